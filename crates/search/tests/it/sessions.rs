//! Conversations that go on from call to call, and what replies have to say about themselves.

use std::collections::BTreeMap;

use mle_star_agent::{Call, Reply, Thread};

use crate::world::{World, useful_reply};

/// A world in which every conversation that is kept is called after its step.
fn talking() -> World {
    World::new("M=2 T=1 K=2 L=2 R=1 session=path").on_call(|call| {
        let session = call.thread.is_some().then(|| call.step.clone());
        Some(Ok(Reply { session, ..Reply::text(useful_reply(call)) }))
    })
}

/// What each call was to go on with.
fn threads(world: &World) -> BTreeMap<String, Option<Thread>> {
    world.calls().into_iter().map(|call| (call.step, call.thread)).collect()
}

/// REQ-OR-021
#[tokio::test]
async fn the_calls_of_a_path_go_on_with_each_other_and_with_nobody_else() {
    let world = talking();
    world.run().await.unwrap();
    let calls = world.calls();
    for path in ["path-0", "path-1"] {
        let of_path: Vec<&Call> = calls.iter().filter(|call| call.lane == path).collect();
        assert!(of_path.len() > 6);
        let mut before = None;
        for call in of_path {
            let folder = world.dir().sessions();
            assert_eq!(call.thread, Some(Thread { folder, after: before }), "{}", call.step);
            before = Some(call.step.clone());
        }
    }
    let others = calls.iter().filter(|call| !call.lane.starts_with("path-"));
    assert!(others.clone().count() > 5 && others.into_iter().all(|call| call.thread.is_none()));

    let alone = World::new("M=1 T=1 K=1 L=1");
    alone.run().await.unwrap();
    assert!(alone.calls().iter().all(|call| call.thread.is_none()), "unless it is asked for");
}

#[tokio::test]
async fn a_resumed_path_goes_on_with_the_conversation_that_it_had() {
    let whole = talking();
    whole.run().await.unwrap();
    let (expected, folder) = (threads(&whole), whole.dir().sessions());
    let journal = fs_err::read_to_string(whole.dir().journal()).unwrap();
    let lines: Vec<&str> = journal.split_inclusive('\n').collect();
    for end in (1..lines.len()).step_by(5) {
        let mut world = talking();
        world.task.data_dir = whole.task.data_dir.clone();
        fs_err::create_dir_all(world.dir().root()).unwrap();
        fs_err::write(world.dir().journal(), lines[..end].concat()).unwrap();
        let solutions = world.dir().root().join("solutions");
        fs_err::create_dir_all(&solutions).unwrap();
        for kept in whole.dir().root().join("solutions").read_dir_utf8().unwrap() {
            let kept = kept.unwrap().into_path();
            fs_err::copy(&kept, solutions.join(kept.file_name().unwrap())).unwrap();
        }
        let run = world.reopen();
        run.rehearse(mle_star_search::run(&run.ctx())).unwrap();
        mle_star_search::run(&run.ctx()).await.unwrap();
        for (step, thread) in threads(&world) {
            let thread = thread.map(|thread| Thread { folder: folder.clone(), ..thread });
            assert_eq!(thread, expected[&step], "{step}, after {end} records");
        }
    }
}

#[tokio::test]
async fn what_a_reply_warns_of_is_told_once() {
    let world = World::new("M=1 T=1 K=1 L=1").on_call(|call| {
        let warnings = vec!["from memory".to_owned()];
        let reply = || Reply { warnings, ..Reply::text(useful_reply(call)) };
        (call.role == "retriever").then(|| Ok(reply()))
    });
    world.run().await.unwrap();
    assert_eq!(world.warnings(), ["from memory"]);
    let run = world.reopen();
    mle_star_search::run(&run.ctx()).await.unwrap();
    assert_eq!(world.warnings(), ["from memory"]);
}

#[tokio::test]
async fn without_web_search_no_agent_gets_the_web_and_that_is_told() {
    let world = World::new("M=1 T=1 K=1 L=1 web_search=off");
    world.run().await.unwrap();
    assert!(world.calls_of("retriever").iter().all(|call| call.tools.is_empty()));
    let expected = "web_search is off: A_retriever names models from its own knowledge";
    assert_eq!(world.warnings(), [expected]);
}
