//! What can be done to a block of a script.
//!
//! A block is one or more whole sections: all features together with the table, one model, the
//! list of models, or a single other section. An idea is a sentence that ends with a tag between
//! brackets; the tag is how the coder finds the pieces again. `[features/a+b]` adds two pieces.

use crate::Playbook;
use crate::catalogue::{Catalogue, Piece, Shelf};
use crate::script::{Kind, Script, Section, dictionary};

/// A part of a script that is refined as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// What it is called in summaries, such as `features` and `model: lightgbm`.
    pub(crate) key: String,
    /// Its text in the script, without line breaks around it.
    pub(crate) text: String,
}

/// All blocks of a script, in an order that has proved worthwhile where nothing is known.
pub(crate) fn blocks(script: &Script) -> Vec<Block> {
    let mut blocks = Vec::new();
    let position = |kind: Kind| script.sections.iter().position(|it| it.kind == kind);
    if let Some(table) = position(Kind::Table) {
        let first = position(Kind::Features).unwrap_or(table);
        let sections = script.sections.get(first..=table).unwrap_or_default();
        let text: String = sections.iter().map(|it| it.text.as_str()).collect();
        let text = text.trim_end_matches(['\n', '\r', ' ']).to_owned();
        blocks.push(Block { key: "features".to_owned(), text });
    }
    for kind in [Kind::Members, Kind::Model, Kind::Target, Kind::Blend, Kind::Decision] {
        blocks.extend(
            script
                .of(kind)
                .map(|section| Block { key: section.title(), text: section.quoted().to_owned() }),
        );
    }
    blocks
}

/// Which of the blocks above a quoted text is.
pub(crate) fn key_of(text: &str) -> Option<String> {
    blocks(&Script::parse(text)).into_iter().next().map(|block| block.key)
}

/// The tags of everything that could be done to a block, best first, with the sentence for each.
pub(crate) fn ideas(playbook: &Playbook, block: &str) -> Vec<(String, String)> {
    let catalogue = &playbook.catalogue;
    let script = Script::parse(block);
    let mut pieces: Vec<&Piece> = Vec::new();
    for section in &script.sections {
        let name = section.name.as_deref();
        pieces.extend(catalogue.refinements(section.kind, name).into_iter().filter(|piece| {
            !section.text.contains(piece.body.trim()) && !section.text.contains(&bracketed(piece))
        }));
    }
    let mut ideas: Vec<(String, String)> = Vec::new();
    if script.first(Kind::Table).is_some() {
        let new = |piece: &&Piece| !script.has(Kind::Features, &piece.name);
        let features = catalogue.on(Shelf::Features).filter(new);
        ideas.extend(features.map(|piece| (piece.tag(), piece.plan())));
    } else if let Some(members) = script.first(Kind::Members) {
        let known = models_of(members);
        let new = |piece: &&Piece| !known.contains(&piece.name);
        // Those that were retrieved have been merged already, or merging them did not help.
        let retrieved = playbook.options.models_retrieved;
        let tried = catalogue.on(Shelf::Recipes).take(retrieved);
        let recipes = catalogue.on(Shelf::Recipes).skip(retrieved).chain(tried).filter(new);
        ideas.extend(recipes.map(|piece| {
            (piece.tag(), format!("Add another model: {} {}", piece.title, piece.plan()))
        }));
    }
    ideas.extend(pieces.iter().map(|piece| (piece.tag(), piece.plan())));
    ideas
}

/// The block with the pieces of a tag worked in; `None` if the tag means nothing for this block.
pub(crate) fn apply(catalogue: &Catalogue, block: &str, tag: &str) -> Option<String> {
    let (shelf, slugs) = tag.split_once('/')?;
    let pieces: Option<Vec<&Piece>> =
        slugs.split('+').map(|slug| catalogue.tagged(&format!("{shelf}/{slug}"))).collect();
    let mut script = Script::parse(block);
    for piece in pieces? {
        match piece.shelf {
            Shelf::Features => {
                script.first(Kind::Table)?;
                script.insert(refined(piece.as_section(), piece));
            }
            Shelf::Recipes => {
                let members = script.first(Kind::Members)?;
                let mut models = models_of(members);
                models.push(piece.name.clone());
                let members = members.with_line("MODELS = ", &dictionary(&models));
                script.replace(members);
                script.insert(refined(piece.as_section(), piece));
            }
            Shelf::Refinements => {
                let fits = |it: &&mut Section| {
                    it.kind == piece.kind
                        && piece.of.as_ref().is_none_or(|of| it.name.as_ref() == Some(of))
                };
                let place = script.sections.iter_mut().find(fits)?;
                let models = models_of(place);
                let section = Section::new(place.kind, place.name.as_deref(), &piece.body);
                *place = refined(section, piece).with_line("MODELS = ", &dictionary(&models));
            }
            Shelf::Sections | Shelf::Ensembles => return None,
        }
    }
    if script.first(Kind::Table).is_some() {
        script.relist();
    }
    Some(script.to_string().trim_end().to_owned())
}

/// The tag at the end of a plan.
pub(crate) fn tag_of(plan: &str) -> Option<&str> {
    let plan = plan.trim_end();
    let inner = plan.strip_suffix(']')?;
    let tag = inner.get(inner.rfind('[')? + 1..)?;
    tag.contains('/').then_some(tag)
}

/// The models that a members section lists.
fn models_of(members: &Section) -> Vec<String> {
    let line = members.line("MODELS = ").unwrap_or_default();
    let names = line.split(',').filter_map(|entry| entry.split_once(": model_"));
    names.map(|(_, name)| name.trim_end_matches(['}', ' ']).to_owned()).collect()
}

fn bracketed(piece: &Piece) -> String {
    format!("[{}]", piece.tag())
}

/// A section that says below its header where it comes from.
fn refined(section: Section, piece: &Piece) -> Section {
    let note = format!("# {}", piece.plan());
    let text = match section.text.split_once('\n') {
        Some((header, body)) => format!("{header}\n{note}\n{body}"),
        None => section.text.clone(),
    };
    Section { text, ..section }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_tag_stands_at_the_end_of_a_plan() {
        assert_eq!(tag_of("Do it [model/a_b]"), Some("model/a_b"));
        assert_eq!(tag_of("Do it [x]"), None);
        assert_eq!(tag_of("Do it"), None);
    }

    #[test]
    fn every_idea_for_every_block_can_be_carried_out() {
        for playbook in testing::playbooks() {
            let mut seen = Vec::new();
            for recipe in playbook.catalogue.on(Shelf::Recipes) {
                let script = crate::assembly::solution(&playbook, recipe).unwrap();
                // All but the model is the same for every recipe.
                let new = blocks(&script).into_iter().filter(|it| !seen.contains(&it.key));
                let new: Vec<Block> = new.collect();
                seen.extend(new.iter().map(|it| it.key.clone()));
                for block in new {
                    assert_eq!(key_of(&block.text).as_ref(), Some(&block.key));
                    for (tag, plan) in ideas(&playbook, &block.text) {
                        assert_eq!(tag_of(&plan), Some(tag.as_str()));
                        let code = apply(&playbook.catalogue, &block.text, &tag).unwrap();
                        mle_star_python::check_syntax(&code).unwrap();
                        assert_ne!(code, block.text, "{tag}");
                        assert!(
                            !ideas(&playbook, &code).iter().any(|(it, _)| *it == tag),
                            "{tag} is proposed again after it was carried out"
                        );
                        if tag.starts_with("features/") {
                            let whole = script.to_string().replacen(&block.text, &code, 1);
                            assert_eq!(crate::leaks(&whole), [], "{tag}");
                        }
                        let refined = Script::parse(&code);
                        for name in refined.names(Kind::Model) {
                            let listed = code.contains(&format!("\"{name}\": model_{name}"));
                            assert!(listed || refined.first(Kind::Members).is_none(), "{tag}");
                        }
                    }
                }
            }
        }
    }
}
