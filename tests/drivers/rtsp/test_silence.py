from drivers.rtsp.video_track import Silence


def silence(*arrivals):
    heard = Silence(100.0)
    for at in arrivals:
        heard.heard(at)
    return heard


def longest(heard):
    """The whole seconds after which the silence is too long, where 5 s are usual."""
    return next(second for second in range(1_000) if heard.is_too_long(heard.heard_at + second + 0.001, seconds=5.0))


def test_a_camera_that_never_sent_may_be_silent_for_the_usual_time():
    assert longest(silence()) == 5


def test_after_the_first_pictures_nobody_knows_yet_how_often_it_sends():
    assert longest(silence(100.0)) == 15
    assert longest(silence(101.0, 101.0, 101.0)) == 15


def test_a_camera_that_sends_rarely_may_be_silent_for_longer():
    assert longest(silence(100.0, 106.5, 113.0)) == 20
    assert longest(silence(100.0, 200.0)) == 120


def test_a_single_pause_is_forgotten():
    usual = [100 + number * 0.04 for number in range(100)]
    assert longest(silence(*usual)) == 5
    paused = silence(*usual, *(at + 8.0 for at in usual))
    assert longest(paused) == 5


def test_a_camera_that_sends_irregularly_is_judged_by_its_longest_times():
    at, arrivals = 100.0, []
    for number in range(40):
        at += 6.0 if number % 4 == 0 else 0.5
        arrivals.append(at)
    assert longest(silence(*arrivals)) >= 13
