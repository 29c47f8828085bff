//! Serves the lakes below a root: `cargo run -p moraine-server --example serve -- ./lakes 127.0.0.1:5433`.

use moraine_server::{Server, ServerOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let root = arguments
        .next()
        .unwrap_or_else(|| "memory://lakes".to_owned())
        .parse()?;
    let listen = arguments
        .next()
        .unwrap_or_else(|| "127.0.0.1:5433".to_owned())
        .parse()?;
    let (server, address) = Server::bind(ServerOptions::new(listen, root)).await?;
    println!("listening on {address}");
    server
        .run(async {
            let _ = tokio::signal::ctrl_c().await;
        })
        .await?;
    Ok(())
}
