//! Which types the library shows to those who read and change lakes with it: plain values of its own, and none of the store's
//! keys, records or engine.

use crate::{files, none, shown};

/// What is shown to users of the library.
const FACE: [&str; 2] = [
    "crates/moraine-commit/src/lake",
    "crates/moraine-commit/src/verbs",
];

/// Crates whose types stay behind it.
const HIDDEN: [&str; 6] = [
    "moraine_codec",
    "moraine_keys",
    "slatedb",
    "prost",
    "storekey",
    "object_store",
];

/// Names that a file imports from hidden crates.
fn hidden_names(source: &str) -> Vec<String> {
    let mut names: Vec<String> = HIDDEN.iter().map(|name| (*name).to_owned()).collect();
    for import in source.split("\nuse ").skip(1) {
        let Some((import, _)) = import.split_once(';') else {
            continue;
        };
        if HIDDEN.iter().any(|hidden| import.starts_with(hidden)) {
            let words = import.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            let types = words.filter(|word| word.starts_with(|first: char| first.is_ascii_uppercase()));
            names.extend(types.map(str::to_owned));
            names.extend(import.contains("proto").then(|| "proto".to_owned()));
        }
    }
    names
}

/// The public items of a file: signatures of functions, and whole types.
fn public_items(source: &str) -> Vec<&str> {
    let mut items = Vec::new();
    let mut at = 0;
    while let Some(found) = source.get(at..).and_then(|rest| rest.find("pub ")) {
        let start = at + found;
        let rest = source.get(start..).unwrap_or_default();
        let line_start = source
            .get(..start)
            .and_then(|before| before.rfind('\n'))
            .map_or(0, |end| end + 1);
        let indented = source
            .get(line_start..start)
            .unwrap_or_default()
            .trim()
            .is_empty();
        let is_type = rest.starts_with("pub struct") || rest.starts_with("pub enum");
        let end = if is_type {
            type_end(rest)
        } else {
            rest.find(['{', ';'])
        };
        let end = end.unwrap_or(rest.len());
        let words = [
            "fn", "async fn", "const", "struct", "enum", "type", "trait", "static",
        ];
        let is_item = words.iter().any(|word| rest.starts_with(&format!("pub {word} ")));
        if indented && is_item {
            items.push(rest.get(..end).unwrap_or_default());
        }
        at = start + "pub ".len();
    }
    // What stands for a type of the library in another's place is as public as its methods.
    items.extend(
        source
            .split("\nimpl ")
            .skip(1)
            .filter_map(|rest| rest.split_once('{').map(|(head, _)| head)),
    );
    items
}

/// The end of a type: of its line, or of its braces.
fn type_end(item: &str) -> Option<usize> {
    let (brace, semicolon) = (item.find('{'), item.find(';'));
    match (brace, semicolon) {
        (Some(brace), semicolon) if semicolon.is_none_or(|semicolon| brace < semicolon) => {
            item.find("\n}").map(|end| end + 2)
        }
        (_, semicolon) => semicolon,
    }
}

fn mentions(item: &str, name: &str) -> bool {
    item.lines()
        .filter(|line| !line.trim_start().starts_with("//") && !line.contains("pub(crate)"))
        .flat_map(|line| line.split(|letter: char| !letter.is_alphanumeric() && letter != '_'))
        .any(|word| word == name)
}

#[test]
fn lakes_are_read_and_changed_without_types_of_the_store() {
    let mut findings = Vec::new();
    for (path, source) in files(&FACE, &[".rs"]) {
        let hidden = hidden_names(&source);
        // Private fields may hold what they like.
        for item in public_items(&source) {
            let shows_fields = item.starts_with("pub struct");
            let public: String = item
                .lines()
                .enumerate()
                .filter(|(at, line)| !shows_fields || *at == 0 || line.trim_start().starts_with("pub "))
                .map(|(_, line)| format!("{line}\n"))
                .collect();
            for name in &hidden {
                if mentions(&public, name) {
                    let head = item.lines().next().unwrap_or_default();
                    findings.push(format!("{}: {name} in `{head}`", shown(&path)));
                }
            }
        }
    }
    none(&findings, "types of the store are shown to users of the library");
}

#[test]
fn a_type_of_the_store_would_be_found() {
    let source = "\nuse moraine_codec::proto::{SchemaValue};\n\npub fn schema() -> SchemaValue {\n}\n";
    let hidden = hidden_names(source);
    let found = public_items(source)
        .into_iter()
        .any(|item| hidden.iter().any(|name| mentions(item, name)));
    assert!(found);
}
