from fanin.domain.diagnosis import Code, Finding, Severity, most_likely_first


def _finding(code: Code, severity: Severity) -> Finding:
    return Finding(code, severity, "", "", "")


def test_errors_come_first_then_what_explains_most_directly():
    slow = _finding(Code.SLOW, Severity.INFO)
    vanished = _finding(Code.VANISHED, Severity.WARNING)
    waiting = _finding(Code.WAITING, Severity.WARNING)
    dead = _finding(Code.DEAD_LETTERS_WAITING, Severity.ERROR)

    assert most_likely_first([slow, vanished, waiting, dead]) == (dead, waiting, vanished, slow)
