use moraine_keys::{TableScoped, TagKey};

fn main() {
    let _ = TagKey::scan_table(7);
}
