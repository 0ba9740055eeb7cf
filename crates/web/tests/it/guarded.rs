//! Who is served, and who is not.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use crate::client::{Folder, News, RENT, answer, get, parts, send};

const PATHS: [&str; 9] = [
    "/",
    "/assets/app.js",
    "/assets/style.css",
    "/api/runs",
    "/api/live?run=rent",
    "/api/steps?run=rent",
    "/api/step?run=rent&key=phase1/retriever",
    "/api/prompt?run=rent&key=phase1/retriever",
    "/api/solution?run=rent&id=model-0",
];

#[test]
fn nothing_is_served_without_the_token() {
    let folder = Folder::new();
    folder.run("rent", RENT);
    let server = folder.serve();
    let (host, token) = parts(&server);
    for path in PATHS.iter().chain(&["/nowhere"]) {
        for extra in ["", "Cookie: mle_star_1=x\r\n", "Authorization: Bearer x\r\n"] {
            let request =
                format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{extra}Connection: close\r\n\r\n");
            let refused = answer(&server, &request);
            assert_eq!(refused.status, 401, "{path}");
            assert!(!refused.head.contains("set-cookie"), "{path}");
            assert!(!refused.body.contains("rent") && refused.body.len() < 100, "{path}");
        }
    }
    // The cookie that the page sets is as good as the token.
    let page = get(&server, "/");
    let port = host.rsplit_once(':').unwrap().1;
    assert!(page.head.contains(&format!("set-cookie: mle_star_{port}={token}; path=/; httponly")));
    let request = format!(
        "GET /api/runs HTTP/1.1\r\nHost: {host}\r\nCookie: mle_star_{port}={token}\r\n\
         Connection: close\r\n\r\n"
    );
    assert_eq!(answer(&server, &request).status, 200);
}

#[test]
fn a_foreign_host_and_other_methods_are_refused() {
    let folder = Folder::new();
    let server = folder.serve();
    let (host, token) = parts(&server);
    let status = |method: &str, host: &str| {
        let request = format!(
            "{method} /?token={token} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        );
        answer(&server, &request).status
    };
    assert_eq!(status("GET", &host), 200);
    assert_eq!(status("GET", "evil.example"), 421);
    assert_eq!(status("GET", &host.replace("127.0.0.1", "127.0.0.1.evil.example")), 421);
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"] {
        let request = format!(
            "{method} /?token={token} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(answer(&server, &request).status, 405, "{method}");
    }
}

#[test]
fn every_answer_forbids_the_browser_what_the_page_does_not_need() {
    let folder = Folder::new();
    folder.run("rent", RENT);
    let server = folder.serve();
    for path in PATHS.iter().filter(|it| !it.contains("live")).chain(&["/nowhere"]) {
        let head = get(&server, path).head;
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self';",
            "require-trusted-types-for 'script'",
            "x-content-type-options: nosniff",
            "cache-control: no-store",
            "referrer-policy: no-referrer",
        ] {
            assert!(head.contains(header), "{path} lacks {header}");
        }
    }
}

/// The page says nothing that its policy would refuse: nothing inline, nothing from elsewhere.
#[test]
fn the_page_is_all_our_own() {
    let folder = Folder::new();
    let server = folder.serve();
    let page = get(&server, "/").body;
    let mut names: Vec<&str> =
        page.split('"').filter_map(|it| it.strip_prefix("/assets/")).collect();
    names.sort_unstable();
    assert_eq!(names, ["app.js", "icon.svg", "style.css"]);
    for name in ["app.js", "style.css", "icon.svg", "dom.js", "chart.js", "panel.js", "tree.js"] {
        let file = get(&server, &format!("/assets/{name}"));
        assert_eq!(file.status, 200, "{name}");
        let elsewhere = file.body.replace("http://www.w3.org/2000/svg", "");
        for word in ["http:", "https:", "innerHTML", "outerHTML", "insertAdjacent", "eval("] {
            assert!(!elsewhere.contains(word), "{name} has {word}");
        }
    }
}

#[test]
fn a_name_leads_to_no_run_outside_of_the_folder() {
    let folder = Folder::new();
    folder.run("inside/rent", RENT);
    folder.run("outside", RENT);
    let inside = mle_star_web::Source::at(&folder.path().join("inside"));
    let server = mle_star_web::Server::start(inside, 0, crate::client::QUICK).unwrap();
    assert_eq!(get(&server, "/api/steps?run=rent").status, 200);
    for name in
        ["../outside", "..%2Foutside", "", ".", "..", "rent%2F..%2F..%2Foutside", "x", "%00"]
    {
        assert_eq!(get(&server, &format!("/api/steps?run={name}")).status, 404, "{name}");
    }
}

/// A client that asks for much and takes nothing is dropped, and nobody waits for it.
#[test]
fn a_stalled_client_is_dropped_and_delays_nobody() {
    let folder = Folder::new();
    folder.run("rent", RENT);
    let server = folder.serve();
    let (host, token) = parts(&server);
    let request = format!("GET /assets/style.css?token={token} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let asked = 2_000;
    let mut stalled: Vec<_> = (0..3).map(|_| send(&server, "")).collect();
    for stream in &mut stalled {
        stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
        // The server may drop us before we have asked for everything.
        stream.write_all(request.repeat(asked).as_bytes()).ok();
    }

    let (_, first) = News::of(&server, "rent").next();
    assert_eq!(first["state"], "finished");
    std::thread::sleep(Duration::from_secs(1));

    let style = get(&server, "/assets/style.css").body.len();
    for mut stream in stalled {
        let began = Instant::now();
        let mut taken = Vec::new();
        stream.read_to_end(&mut taken).ok(); // an end or a reset, but not all of it
        assert!(taken.len() < style * asked, "{} bytes were taken", taken.len());
        assert!(began.elapsed() < Duration::from_secs(20), "the connection was still open");
    }
}
