"""Words for a time, in the time zone of the user."""

# ruff: noqa: E501, RUF001 - tables are read by the line, and other scripts are meant

from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from firnline.errors import InputError
from firnline.language.dates import EXAMPLES, Interval, interval

pytestmark = pytest.mark.requirement("B5")

NOW = datetime(2026, 3, 4, 14, 30, tzinfo=UTC)  # a Wednesday
ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "Pacific/Kiritimati",
    "Australia/Lord_Howe",
)
END = datetime.max.replace(tzinfo=UTC)
START = datetime(1970, 1, 1, tzinfo=UTC)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def days(text: str, **options) -> tuple[str, str]:
    """The first and the last day, for a user in UTC."""
    found = interval(text, now=NOW, **options)
    assert found.since.time() == found.until.time() == NOW.min.time()
    return f"{found.since:%Y-%m-%d}", f"{found.until - timedelta(days=1):%Y-%m-%d}"


ONE_DAY = {
    "2026-03-04": "today | Today! |  TODAY\n | heute | aujourd’hui | hoy | сегодня | 今天 | 今日 "
    "| 2026-03-04 | 2026/3/4 | 20260304 | 4.3.2026 | 0 days ago | this wednesday | March 4",
    "2026-03-03": "yesterday | 'yesterday' | from yesterday | tuesday | Tue | last tuesday | on Tuesday "
    "| past tuesday | gestern | hier | ayer | вчера | 昨天 | 昨日 | am Dienstag | letzten Dienstag "
    "| mardi dernier | el martes pasado | во вторник | 星期二 | 周二 | 火曜日 | March 3 | mar 3 "
    "| 3 March | 3rd of March | on the 3rd of March | March 3rd, 2026 | Tuesday, March 3 | 3. März "
    "| le 3 mars | 3 de marzo | 3 марта 2026 года | 3月3日 | 2026年3月3日 | 三月三日 | 三月三号 | 这周二 | a day ago | one day ago",
    "2026-03-05": "tomorrow | morgen | demain | mañana | завтра | 明天 | 2026-03-05 | 5 March 2026",
    "2026-02-24": "上周二 | 上星期二 | 上个星期二 | 先週の火曜日 | Dienstag letzter Woche | Tuesday of last week",
    "2025-12-25": "十二月二十五日 | 12月25日 | 25. Dezember",
    "2026-02-19": "13 days ago | 十三天前 | vor 13 Tagen",
    "2026-02-25": "wednesday | last Wednesday | Mittwoch | miercoles | miércoles | в среду | 水曜日",
    "2026-03-02": "monday | the day before yesterday | vorgestern | avant-hier | 2 days ago "
    "| a couple of days ago",
    "2026-03-01": "3 days ago | three days ago | vor 3 Tagen | vor drei Tagen | il y a 3 jours "
    "| hace 3 días | hace tres dias | 3 дня назад | 3天前 | 三天前 | 3日前 | sunday | 1er mars | 日曜日",
    "2025-03-05": "March 5 | 5 March 2025 | March 5, 2025 | the 5th of March 2025 | 5. März 2025 "
    "| 5 March last year | March 5th of last year",
    "2024-02-29": "Feb 29 | 29 February | February 29, 2024",
    "2025-04-13": "13/04/2025 | 04/13/2025 | 13-04-2025 | 13.4.2025",
    "2025-03-03": "03/03/2025",
    "2025-04-03": "3.4.2025 | 03.04.2025",
}


@pytest.mark.parametrize(
    ("text", "day"), [(t.strip(" "), day) for day, line in ONE_DAY.items() for t in line.split("|")]
)
def test_a_day_is_understood_in_every_wording(text, day):
    assert days(text) == (day, day)


SEVERAL_DAYS = {
    ("2026-03-02", "2026-03-08"): "this week | diese Woche | this WEEK | 2026-W10 | 这周 | 今週",
    ("2026-02-23", "2026-03-01"): "last week | previous week | a week ago | letzte Woche | 上周 | 先週 "
    "| la semaine dernière | la semana pasada | на прошлой неделе",
    ("2026-02-16", "2026-02-22"): "two weeks ago | 2 weeks ago | vor zwei Wochen | 两周前",
    ("2026-03-01", "2026-03-31"): "this month | in March | march | im März | в марте | 2026-03 | 3月 | 三月",
    ("2026-02-01", "2026-02-28"): "last month | a month ago | in February | feb | 上个月 | 先月",
    ("2025-04-01", "2025-04-30"): "in April | April 2025 | in april, 2025 | 2025-04 | april last year",
    ("2025-03-01", "2025-03-31"): "in March 2025 | last March | 2025年3月 | März 2025",
    ("2025-01-01", "2025-12-31"): "last year | in 2025 | 2025 | a year ago | 去年 | letztes Jahr",
    ("2026-01-01", "2026-12-31"): "this year | 2026 | in 2026 | 今年",
    ("2025-04-01", "2025-06-30"): "Q2 2025 | 2025-Q2 | q2",
    ("2026-01-01", "2026-03-31"): "this quarter | Q1",
    ("2026-02-28", "2026-03-01"): "last weekend | on the last weekend | letztes Wochenende "
    "| am letzten Wochenende | 上周末",
    ("2026-03-01", "2026-03-04"): "the last 3 days | last 3 days | in the past three days "
    "| in den letzten drei Tagen",
    ("2026-02-25", "2026-03-04"): "past week | the last week | over the past week | the last 7 days",
    ("2026-02-11", "2026-03-04"): "the last 3 weeks",
    ("2025-12-04", "2026-03-04"): "the last 3 months",
    ("2025-03-04", "2026-03-04"): "the last year",
    ("2026-03-02", "2026-03-06"): "between Monday and Friday | from mon to fri | mon-fri "
    "| zwischen Montag und Freitag",
    ("2026-02-27", "2026-03-02"): "from Friday to Monday",
    ("2026-03-02", "2026-03-04"): "from Monday to today | from Monday to Wednesday | since Monday until today",
    ("2025-03-03", "2025-03-05"): "between 3 March 2025 and 5 March 2025 | 3 March 2025 - 5 March 2025 "
    "| from March 3 to March 5, 2025 | March 3-5, 2025 | 3–5 March 2025 | 2025-03-03..2025-03-05 "
    "| 2025-03-03 to 2025-03-05 | 2025-03-03 – 2025-03-05 | between 3 and 5 March 2025",
    ("2026-03-02", "2026-03-10"): "between March 2 and March 10",
    ("2025-12-20", "2026-01-05"): "from 20 December to 5 January",
    ("2024-12-20", "2025-01-05"): "from 20 December to 5 January 2025",
    ("2024-01-01", "2025-12-31"): "2024-2025 | from 2024 to 2025 | between 2024 and last year",
    ("2027-03-03", "2027-03-05"): "from March 3 to March 5, 2027",
    ("2025-03-01", "2025-06-30"): "from March to June 2025",
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "ends"),
    [(t.strip(), ends) for ends, line in SEVERAL_DAYS.items() for t in line.split("|")],
)
def test_weeks_months_and_ranges_are_complete(text, ends):
    assert days(text) == ends


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("since Monday", utc("2026-03-02"), END),
        ("since March 3", utc("2026-03-03"), END),
        ("seit gestern", utc("2026-03-03"), END),
        ("from Monday onwards", utc("2026-03-02"), END),
        ("after March 3", utc("2026-03-04"), END),
        ("after last week", utc("2026-03-02"), END),
        ("until 5 March 2025", START, utc("2025-03-06")),
        ("up to yesterday", START, utc("2026-03-04")),
        ("before 5 March 2025", START, utc("2025-03-05")),
        ("9999-12-31", utc("9999-12-31"), END),
        ("now", utc("2026-03-04T14:30"), utc("2026-03-04T14:31")),
        ("this morning", utc("2026-03-04"), utc("2026-03-04T12:00")),
        ("this afternoon", utc("2026-03-04T12:00"), utc("2026-03-04T18:00")),
        ("this evening", utc("2026-03-04T18:00"), utc("2026-03-05")),
        ("tonight", utc("2026-03-04T18:00"), utc("2026-03-05T06:00")),
        ("last night", utc("2026-03-03T18:00"), utc("2026-03-04T06:00")),
        ("tuesday morning", utc("2026-03-03"), utc("2026-03-03T12:00")),
        ("2026-03-04T10:15", utc("2026-03-04T10:15"), utc("2026-03-04T10:16")),
        ("2026-03-04 10:15:30Z", utc("2026-03-04T10:15:30"), utc("2026-03-04T10:15:31")),
        ("2026-03-04T10:15+05:45", utc("2026-03-04T04:30"), utc("2026-03-04T04:31")),
        ("2026-03-04T10:15:30.25-0500", utc("2026-03-04T15:15:30"), utc("2026-03-04T15:15:31")),
        ("yesterday at 3pm", utc("2026-03-03T15:00"), utc("2026-03-03T16:00")),
        ("yesterday at 12 a.m.", utc("2026-03-03T00:00"), utc("2026-03-03T01:00")),
        ("from 2026-03-04T10:15 to now", utc("2026-03-04T10:15"), utc("2026-03-04T14:31")),
        ("the last 2 hours", utc("2026-03-04T12:30"), utc("2026-03-04T14:31")),
        ("an hour ago", utc("2026-03-04T13:00"), utc("2026-03-04T14:00")),
        ("from monday morning to friday evening", utc("2026-03-02"), utc("2026-03-07")),
    ],
)
def test_times_of_day_and_open_ends(text, since, until):
    found = interval(text, now=NOW)
    assert (found.since, found.until) == (since, until)


PARTS_OF_DAYS = {
    ("2026-03-03T18:00", "2026-03-04T00:00"): "yesterday evening | gestern Abend | Dienstagabend | 昨天傍晚",
    ("2026-03-03T18:00", "2026-03-04T06:00"): "last night | letzte Nacht | gestern Nacht | 昨晚 | 昨天晚上 | 昨夜",
    ("2026-03-04T00:00", "2026-03-04T12:00"): "this morning | heute Morgen | heute früh | 今天早上 | 今早 | 今天上午",
    ("2026-03-03T00:00", "2026-03-03T12:00"): "gestern Vormittag | Dienstag am Morgen | gestern früh | 昨天上午",
    ("2026-03-03T12:00", "2026-03-03T18:00"): "gestern Nachmittag | am Dienstagnachmittag | 昨天下午",
    ("2026-03-05T00:00", "2026-03-05T12:00"): "tomorrow morning | morgen früh | 明天早上",
    ("2026-03-04T18:00", "2026-03-05T06:00"): "tonight | heute Nacht | 今晚 | 今天晚上",
    ("2026-02-24T18:00", "2026-02-25T06:00"): "上周二晚上",
    ("2026-03-03T17:30", "2026-03-03T17:31"): "gestern um 17:30 Uhr | gestern, 17.30 Uhr | gestern 17 Uhr 30",
    ("2026-03-03T17:00", "2026-03-03T18:00"): "gestern um 17 Uhr | letzten Dienstag um 17 Uhr",
    ("2026-03-04T12:00", "2026-03-04T13:00"): "2 hours ago | vor zwei Stunden | 两个小时前",
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "ends"),
    [(t.strip(), ends) for ends, line in PARTS_OF_DAYS.items() for t in line.split("|")],
)
def test_parts_of_a_day_are_the_same_in_german_and_chinese(text, ends):
    found = interval(text, now=NOW)
    assert (found.since, found.until) == tuple(map(utc, ends))


@pytest.mark.parametrize(
    "text",
    """
     |.|-|?|foo|in|the|of a|a|an|to|on|42|12|3|7 March 1969|1969|0000|10000|99999 days ago|ago|days|
    3 days|in 3 days|mondays|next tuesday|last|this|since|since foo|between|between and|
    between today|today yesterday|today and yesterday|maybe today|today is fine|information fripple|
    julian|car|march 32|february 30|29 February 2025|2026-02-30|2026-13-01|2026-13|2026-W60|
    30/02/2025|31.4.2025|today 25:10|today 10:61|today 13pm|today 0am|10:15|last week 10:15|
    now morning|this week morning|Q5 2025|last tuesday's|2026-03-04T10:15+99:00|
    -3 days ago|3.5 days ago|½ day ago|today\0|tod\ud800ay|Monday, 3 March 2026|until 1969|
    每周二|周一直|jeden Dienstag|am Morgen|in der Nacht|gestern um 25 Uhr|十三月|三月三十二日|
    from yesterday to 3 days ago|between 2026 and 2025|2026-03-05 - 2026-03-04|March 5-3|before 1970
    """.replace("\n    ", "").split("|"),
)
def test_nonsense_is_an_error_and_never_today(text):
    with pytest.raises(InputError):
        interval(text, now=NOW)


def test_an_error_names_what_is_understood():
    with pytest.raises(InputError, match=r"'blursday' is not understood.*yesterday.*3 days ago"):
        interval("blursday", now=NOW)


def test_every_example_in_the_error_is_understood():
    for text in EXAMPLES.split(", "):
        assert interval(text, now=NOW)


def test_an_ambiguous_date_names_both_readings():
    with pytest.raises(InputError, match="2025-03-04 or 2025-04-03"):
        interval("03/04/2025", now=NOW)


def test_reversed_ends_are_an_error_that_says_so():
    with pytest.raises(InputError, match="swap its ends"):
        interval("from yesterday to 3 days ago", now=NOW)


def test_the_words_are_kept():
    assert interval("  Last \n Tuesday ", now=NOW).words == "Last Tuesday"


@pytest.mark.parametrize(
    "zone", ["", "Nowhere/Atlantis", "America", "../etc/passwd", "/etc", "a\0b", "x" * 5000, "é", 7]
)
def test_an_unknown_zone_is_a_clear_error(zone):
    with pytest.raises(InputError, match="tzdata"):
        interval("today", now=NOW, zone=zone)


@pytest.mark.parametrize(
    "now",
    [NOW.replace(tzinfo=None), datetime(1969, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)],
)
def test_a_now_that_cannot_be_is_an_error(now):
    with pytest.raises(InputError):
        interval("tomorrow", now=now, zone="Asia/Kathmandu")


@pytest.mark.parametrize("text", [None, 7, b"today", "today " * 100])
def test_what_is_no_short_text_is_an_error(text):
    with pytest.raises(InputError, match="200 characters"):
        interval(text, now=NOW)


# -- zones -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "now", "text", "since", "until"),
    [
        # The same moment is another day elsewhere.
        ("Asia/Kathmandu", "2026-03-04T18:30", "today", "2026-03-04T18:15", "2026-03-05T18:15"),
        ("America/New_York", "2026-03-04T03:00", "today", "2026-03-03T05:00", "2026-03-04T05:00"),
        ("Pacific/Apia", "2026-03-04T14:30", "today", "2026-03-04T11:00", "2026-03-05T11:00"),
        ("America/New_York", "2026-03-04T03:00", "wednesday", "2026-02-25T05:00", "2026-02-26T05:00"),
        ("America/New_York", "2026-03-04T03:00", "tuesday", "2026-02-24T05:00", "2026-02-25T05:00"),
        # Days of 23 and of 25 hours.
        ("Europe/Berlin", "2026-03-29T12:00", "today", "2026-03-28T23:00", "2026-03-29T22:00"),
        ("Europe/Berlin", "2026-10-26T12:00", "yesterday", "2026-10-24T22:00", "2026-10-25T23:00"),
        ("America/New_York", "2026-03-08T12:00", "2026-03-08", "2026-03-08T05:00", "2026-03-09T04:00"),
        ("America/New_York", "2026-11-01T12:00", "2026-11-01", "2026-11-01T04:00", "2026-11-02T05:00"),
        ("Australia/Lord_Howe", "2026-04-05T12:00", "today", "2026-04-04T13:00", "2026-04-05T13:30"),
        # Weeks and months over a change.
        ("Europe/Berlin", "2026-03-30T12:00", "last week", "2026-03-22T23:00", "2026-03-29T22:00"),
        ("Europe/Berlin", "2026-03-30T12:00", "this month", "2026-02-28T23:00", "2026-03-31T22:00"),
        ("Europe/Berlin", "2026-03-29T00:30", "this morning", "2026-03-28T23:00", "2026-03-29T10:00"),
        # A time that is shown twice is both; around it all is plain.
        ("Europe/Berlin", "2026-10-26T12:00", "2026-10-25T02:30", "2026-10-25T00:30", "2026-10-25T01:31"),
        ("Europe/Berlin", "2026-10-26T12:00", "2026-10-25T01:59", "2026-10-24T23:59", "2026-10-25T00:00"),
        ("Europe/Berlin", "2026-10-26T12:00", "2026-10-25T03:00", "2026-10-25T02:00", "2026-10-25T02:01"),
        # A time that is skipped can still begin a range: at the moment of the jump.
        ("Europe/Berlin", "2026-03-29T12:00", "2026-03-29T02:30 - today", "2026-03-29T01:00", "2026-03-29T22:00"),
        # Midnight itself is skipped.
        ("America/Sao_Paulo", "2018-11-05T12:00", "2018-11-04", "2018-11-04T03:00", "2018-11-05T02:00"),
        ("Africa/Cairo", "2023-04-29T12:00", "2023-04-28", "2023-04-27T22:00", "2023-04-28T21:00"),
        # A zone that skipped 30 December 2011.
        ("Pacific/Apia", "2012-01-02T12:00", "2011-12-29", "2011-12-29T10:00", "2011-12-30T10:00"),
        ("Pacific/Apia", "2012-01-02T12:00", "2011-12-31", "2011-12-30T10:00", "2011-12-31T10:00"),
        # The clock hour where the offset is not a whole one.
        ("Asia/Kathmandu", "2026-03-04T14:30", "1 hour ago", "2026-03-04T13:15", "2026-03-04T14:15"),
        ("Asia/Kathmandu", "2026-03-04T14:30", "1970-01-01", "1969-12-31T18:30", "1970-01-01T18:30"),
    ],
)  # fmt: skip
def test_days_are_those_of_the_zone(zone, now, text, since, until):
    found = interval(text, now=utc(now), zone=zone)
    assert (found.since, found.until) == (utc(since), utc(until))


@pytest.mark.parametrize(
    ("zone", "text"), [("Pacific/Apia", "2011-12-30"), ("Europe/Berlin", "2026-03-29T02:30")]
)
def test_what_the_clocks_skip_does_not_exist(zone, text):
    with pytest.raises(InputError, match=f"does not exist in {zone}"):
        interval(text, now=NOW, zone=zone)


def test_a_zone_may_be_an_object_and_now_in_any_zone():
    east = timezone(timedelta(hours=9))
    found = interval("today", now=NOW.astimezone(ZoneInfo("Pacific/Apia")), zone=east)
    assert found.since == utc("2026-03-03T15:00")


# -- properties --------------------------------------------------------------------------------

zones = st.sampled_from(ZONES)
any_moments = st.datetimes(timezones=st.just(UTC))
moments = any_moments.filter(lambda moment: 1970 < moment.year < 9999)
skipped = {date(2011, 12, 30), date(1994, 12, 31), date(1995, 1, 1)}  # at the date line
some_days = st.dates(date(1970, 1, 1), date(9999, 12, 30)).filter(lambda day: day not in skipped)


def check_local_day(found: Interval, day: date, zone: str) -> None:
    """`found` is `day` in `zone`: it begins with it and ends with it."""
    local = ZoneInfo(zone)
    tick = timedelta(microseconds=1)
    assert found.since.astimezone(local).date() == day
    assert (found.until - tick).astimezone(local).date() == day
    assert found.until.astimezone(local).date() > day
    assert (found.since - tick).astimezone(local).date() < day


@given(some_days, zones, moments)
@example(date(2026, 3, 29), "Europe/Berlin", NOW)
@example(date(2026, 10, 25), "Europe/Berlin", NOW)
@example(date(9999, 12, 30), "America/New_York", NOW)
def test_an_iso_date_is_exactly_that_local_day(day, zone, now):
    check_local_day(interval(day.isoformat(), now=now, zone=zone), day, zone)


@given(st.integers(0, 4000), zones, moments)
def test_n_days_ago_is_the_date_of_now_minus_n(n, zone, now):
    day = now.astimezone(ZoneInfo(zone)).date() - timedelta(days=n)
    if day in skipped or day.year < 1970:
        return
    check_local_day(interval(f"{n} days ago", now=now, zone=zone), day, zone)


@given(st.integers(0, 6), moments)
def test_a_weekday_is_one_to_seven_days_ago(number, now):
    found = interval(("mon", "tue", "wed", "thu", "fri", "sat", "sun")[number], now=now)
    assert found.since.weekday() == number
    assert 1 <= (now.date() - found.since.date()).days <= 7


@given(st.dates(date(1970, 1, 1)), st.dates(date(1970, 1, 1)), moments)
def test_a_range_joins_its_days(a, b, now):
    a, b = sorted((a, b))
    whole = interval(f"between {a} and {b}", now=now)
    assert whole.since == interval(str(a), now=now).since
    assert whole.until == interval(str(b), now=now).until


WORDS = (
    "today yesterday now tuesday march feb 29 3 31 2025 2026-03-04 9999-12-31 1970 10:15 3pm +14:00 z "
    "q2 last this next past the a two 99999 days weeks months years hours weekend ago since until "
    "before after between and from to - / . , of in on year week morning night 3/4/2025 heute "
    "vor 昨天 3天前 月 年 日 назад"
)
words = st.sampled_from(WORDS.split())
phrases = st.lists(words, max_size=7).map(" ".join) | st.lists(words, max_size=5).map("".join)


@given(st.text() | st.text("0123456789-/.: tqwz年月日") | phrases, zones, any_moments)
@example("tomorrow", "UTC", datetime.max.replace(tzinfo=UTC))
@example("9999-12-31 23:59 -14:00", "UTC", NOW)
@example("last 99999 years", "UTC", NOW)
@example("from tuesday to 9999-12-31", "Pacific/Kiritimati", NOW)
@example("between 9999-12-31 and march", "America/New_York", NOW)
def test_any_text_is_an_interval_or_an_input_error(text, zone, now):
    try:
        found = interval(text, now=now, zone=zone)
    except InputError:
        return
    assert found.since < found.until
    assert found.since.tzinfo is found.until.tzinfo is UTC
    assert found.since >= START - timedelta(days=1)
