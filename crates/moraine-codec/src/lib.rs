//! Framed protobuf values of a moraine store, each paired with the key kind it belongs to.
