//! Appends that lost a race are shifted to the newest head, and the lake is then what it would be had they come one by one.

mod client;
mod refusals;
mod serial;
