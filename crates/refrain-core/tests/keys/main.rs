//! Keys, names and derived ids: the same fact has the same key, and no two facts share one.

#[cfg(test)]
mod content;
#[cfg(test)]
mod encoding;
#[cfg(test)]
mod id;
#[cfg(test)]
mod key;
#[cfg(test)]
mod name;
#[cfg(test)]
mod surrogate;
#[cfg(test)]
mod template;
#[cfg(test)]
mod vectors;
