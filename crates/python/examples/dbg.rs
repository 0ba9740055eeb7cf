#![allow(
    missing_docs,
    clippy::all,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::allow_attributes
)]
use std::io::Read;
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().map(String::as_str) == Some("-") {
        let mut s = String::new();
        std::io::stdin().read_to_string(&mut s).unwrap();
        let mut p = tree_sitter::Parser::new();
        p.set_language(&tree_sitter_python::LANGUAGE.into()).unwrap();
        println!("{}", p.parse(&s, None).unwrap().root_node().to_sexp());
        println!("{:?}", mle_star_python::check_syntax(&s).map_err(|e| (e.to_string(), e)));
        println!("{:#?}", mle_star_python::blocks(&s));
        return;
    }
    // each arg is file listing paths
    for path in std::fs::read_to_string(&args[0]).unwrap().lines() {
        let Ok(s) = std::fs::read_to_string(path) else {
            println!("{path}\tnonutf8");
            continue;
        };
        let t = std::time::Instant::now();
        match mle_star_python::check_syntax(&s) {
            Ok(()) => println!("{path}\tok\t{:?}", t.elapsed()),
            Err(e) => println!("{path}\terr\t{}", e.to_string().replace('\t', " ")),
        }
    }
}
