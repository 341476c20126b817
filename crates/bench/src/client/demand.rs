//! Which name is subscribed to next, where popular ones come more often.

/// Zipf's law over places: the first is the most popular.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    /// How likely it is that a place or one before it is next.
    up_to: Vec<f64>,
}

impl Zipf {
    /// Makes the law for so many places. The larger the exponent, the more
    /// popular are the first of them.
    pub(crate) fn new(places: usize, exponent: f64) -> Self {
        let mut sum = 0.0;
        let weights = (1..=places).map(|rank| (rank as f64).powf(-exponent));
        let mut up_to: Vec<f64> = weights
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        up_to.iter_mut().for_each(|p| *p /= sum);
        Self { up_to }
    }

    /// Returns the place for a random number from zero to one.
    pub(crate) fn place(&self, random: f64) -> usize {
        let place = self.up_to.partition_point(|p| *p < random);
        place.min(self.up_to.len().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popular_places_are_chosen_more_often() {
        let zipf = Zipf::new(1000, 1.1);
        let mut random = fastrand::Rng::with_seed(1);
        let mut counts = vec![0; 1000];
        for _ in 0..10_000 {
            counts[zipf.place(random.f64())] += 1;
        }
        assert!(counts[0] > 2 * counts[4], "{:?}", &counts[..5]);
        assert!(counts[0] > 1000);
        assert_eq!(zipf.place(0.0), 0);
        assert_eq!(zipf.place(1.0), 999);
    }
}
