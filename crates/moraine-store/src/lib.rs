//! The store a moraine catalog lives in: pinned views, scans and optimistic transactions over SlateDB or memory.
