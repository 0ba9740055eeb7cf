//! Shares of the machine, so that scripts that run side by side do not fight over cores and cards.
//!
//! Each [`Slot`] has cores and cards that no other slot has. Without that, two scripts that start a
//! thread per core each take far more than twice the time of one. Absent: priorities, and slots of
//! different sizes.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::machine::Gpu;

/// A share of the machine that one script has for itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slot {
    /// The numbers of its cores. Without any, the script may use those that we may use.
    pub cores: Vec<usize>,
    /// Its cards, as `CUDA_VISIBLE_DEVICES` names them: `None` leaves that as it is here, an empty
    /// list hides all.
    pub gpus: Option<Vec<String>>,
}

/// The slots of a machine, and which of them are free.
#[derive(Debug)]
pub struct Slots {
    slots: Vec<Slot>,
    /// The positions of the free slots; there are as many permits.
    free: Mutex<BTreeSet<usize>>,
    permits: Semaphore,
}

/// A slot that is taken. Dropping this gives it back.
#[derive(Debug)]
pub struct SlotGuard<'a> {
    slots: &'a Slots,
    slot: &'a Slot,
    position: usize,
    _permit: SemaphorePermit<'a>,
}

impl Slots {
    /// Splits `cores` and `gpus` into `count` slots as evenly as they go.
    ///
    /// There are never more slots than cores, nor than cards where there are cards, and always at
    /// least one. A slot's cores are neighbours in the given order, because neighbours share
    /// caches and memory.
    pub fn new(count: usize, cores: &[usize], gpus: &[Gpu]) -> Self {
        let most = if gpus.is_empty() { cores.len() } else { cores.len().min(gpus.len()) };
        let count = count.min(most).max(1);
        let slots: Vec<Slot> = (0..count)
            .map(|position| Slot {
                cores: share(cores, position, count).to_vec(),
                gpus: (!gpus.is_empty())
                    .then(|| share(gpus, position, count).iter().map(Gpu::handle).collect()),
            })
            .collect();
        Self { slots, free: Mutex::new((0..count).collect()), permits: Semaphore::new(count) }
    }

    /// How many scripts can run side by side.
    pub fn count(&self) -> usize {
        self.slots.len()
    }

    /// How many cores every slot has at least.
    pub fn smallest(&self) -> usize {
        self.slots.iter().map(|slot| slot.cores.len()).min().unwrap_or_default()
    }

    /// Waits for a free slot, in the order of asking, and takes the first one that is free.
    pub async fn take(&self) -> SlotGuard<'_> {
        loop {
            let permit = self.permits.acquire().await;
            let position = self.free().pop_first();
            // A permit stands for a free slot and nobody closes the semaphore: the first turn
            // always succeeds.
            if let (Ok(permit), Some(position)) = (permit, position)
                && let Some(slot) = self.slots.get(position)
            {
                return SlotGuard { slots: self, slot, position, _permit: permit };
            }
        }
    }

    fn free(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for SlotGuard<'_> {
    type Target = Slot;

    fn deref(&self) -> &Slot {
        self.slot
    }
}

impl Drop for SlotGuard<'_> {
    fn drop(&mut self) {
        // The permit is dropped after this, so whoever gets it finds the slot.
        self.slots.free().insert(self.position);
    }
}

/// The part of `all` that falls to `position`, if `count` parts are as even as they can be.
fn share<T>(all: &[T], position: usize, count: usize) -> &[T] {
    let start = all.len() * position / count;
    let end = all.len() * (position + 1) / count;
    all.get(start..end).unwrap_or_default()
}

/// The numbers of the cores that this process may use, in order.
///
/// Where a container is given less processor time than it sees cores, only as many are listed: more
/// threads than that are not faster, they are stopped again and again.
pub fn our_cores() -> Vec<usize> {
    let usable = std::thread::available_parallelism().map_or(1, usize::from);
    let mut cores = allowed_cores().unwrap_or_else(|| (0..usable).collect());
    cores.truncate(usable);
    cores
}

#[cfg(target_os = "linux")]
fn allowed_cores() -> Option<Vec<usize>> {
    use rustix::thread::{CpuSet, sched_getaffinity};

    // A machine with more cores than the set has room for gives an error here.
    let allowed = sched_getaffinity(None).ok()?;
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core)).collect();
    (!cores.is_empty()).then_some(cores)
}

#[cfg(not(target_os = "linux"))]
fn allowed_cores() -> Option<Vec<usize>> {
    None
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use proptest::prelude::*;

    use super::*;

    fn cards(count: u32) -> Vec<Gpu> {
        let card = |index| Gpu { index, uuid: format!("GPU-{index}"), ..Gpu::default() };
        (0..count).map(card).collect()
    }

    /// Whether parts together are `all`, in order, and of sizes that differ by one at most.
    fn splits<T: PartialEq + Clone>(all: &[T], parts: &[Vec<T>]) -> bool {
        let sizes = || parts.iter().map(Vec::len);
        parts.concat() == all && sizes().max().unwrap() - sizes().min().unwrap() <= 1
    }

    proptest! {
        #[test]
        fn slots_share_out_everything_evenly_and_nothing_twice(
            count in 0_usize..80,
            cores in proptest::collection::btree_set(0_usize..1024, 0..200),
            gpus in 0_u32..20,
        ) {
            let (cores, gpus) = (Vec::from_iter(cores), cards(gpus));
            let slots = Slots::new(count, &cores, &gpus);

            let cores_of: Vec<_> = slots.slots.iter().map(|slot| slot.cores.clone()).collect();
            prop_assert!(splits(&cores, &cores_of), "{slots:?}");
            prop_assert!(slots.count() == 1 || cores_of.iter().all(|cores| !cores.is_empty()));
            prop_assert!((1..=count.max(1)).contains(&slots.count()));

            let gpus_of: Option<Vec<_>> =
                slots.slots.iter().map(|slot| slot.gpus.clone()).collect();
            match gpus_of {
                None => prop_assert!(gpus.is_empty()),
                Some(gpus_of) => {
                    let handles: Vec<_> = gpus.iter().map(Gpu::handle).collect();
                    prop_assert!(splits(&handles, &gpus_of), "{slots:?}");
                    prop_assert!(gpus_of.iter().all(|gpus| !gpus.is_empty()));
                }
            }
            let fewest = if gpus.is_empty() { cores.len() } else { cores.len().min(gpus.len()) };
            prop_assert_eq!(slots.count(), count.min(fewest).max(1));
        }
    }

    #[test]
    fn a_machine_with_cards_has_no_more_slots_than_cards() {
        let slots = Slots::new(8, &[0, 1, 2, 3, 8, 9], &cards(2)).slots;
        let slot = |cores: [usize; 3], gpu: &str| Slot {
            cores: cores.into(),
            gpus: Some(vec![gpu.to_owned()]),
        };
        assert_eq!(slots, [slot([0, 1, 2], "GPU-0"), slot([3, 8, 9], "GPU-1")]);
    }

    #[test]
    fn without_cards_the_devices_are_left_as_they_are() {
        let slots = Slots::new(2, &[4, 5, 6], &[]).slots;
        let slot = |cores: &[usize]| Slot { cores: cores.into(), gpus: None };
        assert_eq!(slots, [slot(&[4]), slot(&[5, 6])]);
    }

    #[tokio::test]
    async fn a_slot_is_taken_by_one_until_it_is_given_back() {
        let slots = Slots::new(2, &[0, 1], &[]);
        let first = slots.take().await;
        let second = slots.take().await;
        assert_eq!((first.cores.as_slice(), second.cores.as_slice()), (&[0][..], &[1][..]));

        let mut waiting = Box::pin(slots.take());
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(second);
        let second = waiting.await;
        assert_eq!(second.cores, [1]);

        // The first that is free, not the one given back last.
        drop(first);
        drop(second);
        assert_eq!(slots.take().await.cores, [0]);
    }

    #[tokio::test]
    async fn somebody_who_stops_waiting_loses_no_slot() {
        let slots = Slots::new(1, &[0], &[]);
        let taken = slots.take().await;
        let mut waiting = Box::pin(slots.take());
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(taken);
        drop(waiting); // the slot was on its way to this one
        assert!(slots.take().now_or_never().is_some());
    }

    #[test]
    fn our_cores_are_those_that_the_system_counts() {
        let cores = our_cores();
        assert!(cores.is_sorted() && !cores.is_empty());
        assert!(cores.len() <= std::thread::available_parallelism().unwrap().get());
    }
}
