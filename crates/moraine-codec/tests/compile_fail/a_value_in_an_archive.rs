use moraine_codec::Stored;
use moraine_keys::ArchivedInsertKey;

fn stored<K: Stored>() {}

fn main() {
    stored::<ArchivedInsertKey>();
}
