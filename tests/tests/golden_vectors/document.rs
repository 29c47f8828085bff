//! A golden file: names and bytes as text, one pair after the other, so that a difference is a line.

use std::fmt;
use std::fs;
use std::path::PathBuf;

/// Bytes on one line of hexadecimal.
const BYTES_PER_LINE: usize = 56;

/// One file of golden vectors.
pub(crate) struct Document {
    file: &'static str,
    text: String,
}

impl Document {
    /// An empty file with a heading; `about` says what its vectors are.
    pub(crate) fn new(file: &'static str, about: &str) -> Self {
        let text = format!(
            "# {about}\n# Written by `cargo xtask golden`, compared by `cargo xtask golden --check`. Never edited by hand.\n"
        );
        Self { file, text }
    }

    /// Adds a vector.
    pub(crate) fn add(&mut self, name: &dyn fmt::Display, bytes: &[u8]) {
        self.text.push_str(&format!("\n{name}\n"));
        self.add_bytes(bytes);
    }

    /// Adds a vector with a line that says in full what it is of.
    pub(crate) fn add_described(&mut self, name: &str, description: &dyn fmt::Debug, bytes: &[u8]) {
        self.text.push_str(&format!("\n{name}\n# {description:?}\n"));
        self.add_bytes(bytes);
    }

    fn add_bytes(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            self.text.push_str("  (no bytes)\n");
        }
        for line in bytes.chunks(BYTES_PER_LINE) {
            let hex: String = line.iter().map(|byte| format!("{byte:02x}")).collect();
            self.text.push_str(&format!("  {hex}\n"));
        }
    }

    /// The file with what it should hold.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Writes the file.
    pub(crate) fn write(&self) {
        let path = self.path();
        fs::create_dir_all(path.parent().expect("a file in a directory")).expect("the directory can be made");
        fs::write(&path, &self.text).expect("the file can be written");
        println!("wrote tests/golden/{}", self.file);
    }

    /// The first line in which the file in the repository differs.
    pub(crate) fn compare(&self) -> Result<(), String> {
        let stored = fs::read_to_string(self.path()).unwrap_or_default();
        if stored == self.text {
            return Ok(());
        }
        let end = "(end of file)";
        let mut name = "";
        for number in 0.. {
            let expected = stored.lines().nth(number).unwrap_or(end);
            let got = self.text.lines().nth(number).unwrap_or(end);
            if expected != got {
                return Err(self.difference(number + 1, name, expected, got));
            }
            if expected == end {
                break;
            }
            if !expected.starts_with([' ', '#']) {
                name = expected;
            }
        }
        Err(self.difference(1, name, "other line ends", "line feeds"))
    }

    fn difference(&self, line: usize, name: &str, expected: &str, got: &str) -> String {
        format!(
            "the bytes of the format differ from the golden vectors\n\
             \x20 file      tests/golden/{}\n\
             \x20 line      {line} ({name})\n\
             \x20 expected  {}\n\
             \x20 got       {}\n\
             Stores that exist hold the expected bytes. If the difference is meant, and every store is migrated, write \
             the files anew with `cargo xtask golden`.",
            self.file,
            expected.trim_start(),
            got.trim_start(),
        )
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("golden")
            .join(self.file)
    }
}
