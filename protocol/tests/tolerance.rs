//! What a message may lack, and what it may say that this build does not know.

use reminderd_protocol::history::{HistoryCompactedParams, HistoryRewoundParams, Retained};
use reminderd_protocol::methods::find;
use reminderd_protocol::queue::StageParams;
use reminderd_protocol::roster::Lane;
use reminderd_protocol::session::SessionOpenParams;
use reminderd_protocol::state::{GoalSetParams, SectionSetParams, TaskPutParams, TaskStatus};
use serde_json::{Value, json};

fn refusal(method: &str, params: &Value) -> String {
    (find(method).unwrap().params.canonical)(params).unwrap_err().to_string()
}

#[test]
fn an_unknown_word_is_kept_as_text() {
    let params = json!({ "session": "s", "type": "x", "body": "b", "lane": "express", "new": 1 });
    let staged: StageParams = serde_json::from_value(params).unwrap();
    assert_eq!(staged.lane, Some(Lane::Unknown("express".to_owned())));

    let params = json!({ "session": "s", "task": { "id": "1", "subject": "x", "status": 3 } });
    let put: TaskPutParams = serde_json::from_value(params).unwrap();
    assert_eq!(put.task.status, TaskStatus::Unknown("3".to_owned()));

    let params = json!({ "session": "s", "retained": "some" });
    let compacted: HistoryCompactedParams = serde_json::from_value(params).unwrap();
    assert_eq!(compacted.retained, Retained::Unknown("some".to_owned()));
}

#[test]
fn a_missing_member_is_named() {
    for (method, params, member) in [
        ("reminder/wait", json!({}), "session"),
        ("reminder/commit", json!({}), "token"),
        ("reminder/observe", json!({ "session": "s", "key": "k", "type": "x" }), "body"),
        ("goal/set", json!({ "session": "s" }), "goal"),
        ("pool/set", json!({ "session": "s", "pool": "tools" }), "names"),
        ("history/rewound", json!({ "session": "s" }), "through"),
        ("fact/set", json!({ "session": "s", "name": "n" }), "value"),
        ("roster/register", json!({ "session": "s", "reminder": {} }), "id"),
    ] {
        let refusal = refusal(method, &params);
        assert!(refusal.contains(&format!("`{member}`")), "{method}: {refusal}");
    }
}

#[test]
fn null_says_something_where_it_is_documented_to() {
    let params = json!({ "session": "s", "goal": null });
    assert_eq!(serde_json::from_value::<GoalSetParams>(params).unwrap().goal, None);
    let params = json!({ "session": "s", "through": null });
    assert_eq!(serde_json::from_value::<HistoryRewoundParams>(params).unwrap().through, None);
    let params = json!({ "session": "s", "section": "memory" });
    assert_eq!(serde_json::from_value::<SectionSetParams>(params).unwrap().content, None);

    let open = |params| serde_json::from_value::<SessionOpenParams>(params).unwrap().records;
    assert_eq!(open(json!({ "session": "s" })), None);
    assert_eq!(open(json!({ "session": "s", "records": null })), None);
    assert_eq!(open(json!({ "session": "s", "records": [] })), Some(Vec::new()));
}

#[test]
fn a_method_without_params_takes_any_spelling_of_none() {
    let canonical = find("session/list").unwrap().params.canonical;
    for none in [json!(null), json!([]), json!({}), json!({ "unknown": 1 })] {
        assert_eq!(canonical(&none).unwrap(), json!({}));
    }
    assert!(refusal("shutdown", &json!([1])).contains("expected no params"));
}
