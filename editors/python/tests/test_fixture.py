"""The fixture, as a project's own tests use it: pytest finds it in the installed package."""

import pytest


def test_each_test_has_a_daemon_of_its_own(reminderd):
    session = reminderd.session("s")
    assert session.opened()["state"] == "new"
    with session.turn(), session.reminders() as delivery:
        assert delivery.token is not None


@pytest.mark.parametrize("name", ["first", "second"])
def test_nothing_is_left_of_the_test_before(reminderd, name):
    assert reminderd.request("session/list") == []
    reminderd.session("s").opened()


def test_a_missing_daemon_fails_the_test_with_its_health(pytester, monkeypatch):
    monkeypatch.setenv("REMINDERD", "/nowhere/reminderd")
    pytester.makepyfile("def test_it(reminderd): pass")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*trouble: /nowhere/reminderd does not start*"])
