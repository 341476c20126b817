//! The token of the admin API, in a file that may be replaced.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

/// The maximum of bytes in the file: it is read for each request that shows a
/// token.
const MOST_BYTES: u64 = 64 << 10;
/// How long a request waits for the file, which may be on a disk that hangs.
const PATIENCE: Duration = Duration::from_secs(5);

/// The file with the token.
#[derive(Debug)]
pub(crate) struct TokenFile {
    path: PathBuf,
    /// Held by the one thread that reads: requests with wrong tokens must not
    /// take all threads.
    reading: Arc<Mutex<()>>,
}

impl TokenFile {
    /// Makes the token of a file. The file is read later, for each request.
    pub(crate) fn new(path: PathBuf) -> Self {
        let reading = Arc::default();
        Self { path, reading }
    }

    /// Reads the token on this thread, as at the start of the program.
    ///
    /// # Errors
    /// The file cannot be read, or is empty.
    pub(crate) fn read(&self) -> Result<String, String> {
        read(&self.path)
    }

    /// Reads the token on another thread. The file is read for each request,
    /// since it may have been replaced by one with a new token.
    ///
    /// # Errors
    /// The file cannot be read, is empty, or takes too long.
    pub(super) async fn read_in_background(&self) -> Result<String, String> {
        let path = self.path.clone();
        let reading = Arc::clone(&self.reading);
        let read_token = async move {
            let only_reader = reading.lock_owned().await;
            let reader = move || {
                let token = read(&path);
                drop(only_reader);
                token
            };
            let token = tokio::task::spawn_blocking(reader).await;
            token.unwrap_or_else(|error| Err(error.to_string()))
        };

        let result = tokio::time::timeout(PATIENCE, read_token).await;
        result.unwrap_or_else(|_| {
            let path = self.path.display();
            Err(format!("the token file {path} cannot be read in time"))
        })
    }
}

/// Reads the token in a file, white space around it aside. Blocks on the disk.
///
/// # Errors
/// The file cannot be read, or is empty.
fn read(path: &std::path::Path) -> Result<String, String> {
    let path_text = path.display();
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(MOST_BYTES).read_to_string(&mut text))
        .map_err(|error| format!("the token file {path_text} cannot be read: {error}"))?;
    match text.trim() {
        "" => Err(format!("the token file {path_text} is empty")),
        token => Ok(token.to_owned()),
    }
}
