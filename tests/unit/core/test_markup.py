from html.parser import HTMLParser

import pytest

from medthink.core.markup import Markup, clean, fold_section, joined, one_line, paragraphs, tag


def test_plain_children_are_escaped_and_markup_is_not():
    inner = tag("b", "1 < 2 & 'x' \"y\"")
    assert inner == "<b>1 &lt; 2 &amp; &#x27;x&#x27; &quot;y&quot;</b>"
    assert tag("p", inner, "<i>") == f"<p>{inner}&lt;i&gt;</p>"
    assert joined(["<a>", Markup("<br>")]) == "&lt;a&gt;<br>"


@pytest.mark.parametrize("value", ['" onload="x', "' onload='x", "><script>", "a\nb", "\x00\x1b"])
def test_an_attribute_cannot_be_left(value):
    found = {}

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            found[tag] = dict(attrs)

    Reader().feed(tag("p", "x", title=value))
    assert found == {"p": {"title": clean(value)}}


def test_attribute_names_and_void_elements():
    assert tag("img", src="data:x", class_="a", aria_label="b", width=3, alt=None) == (
        '<img src="data:x" class="a" aria-label="b" width="3">'
    )


def test_what_cannot_be_shown_is_marked():
    assert clean("a\x00\x08\x0b\x1b\x7f\x85\u202e\u2066\ud800b\tc\n") == "a" + "\ufffd" * 9 + "b\tc\n"
    joined([clean("\ud83d")]).encode()


def test_one_line_is_short_and_single():
    assert one_line(" a\n\tb   c ") == "a b c"
    assert one_line("x" * 100, 10) == "x" * 9 + "…"


def test_a_text_without_end_is_cut_and_says_so():
    shown = paragraphs("y" * 5000)
    assert shown.count("y") - "say".count("y") < 4100
    assert "1,000 more characters" in shown
    assert paragraphs("  ") == '<p class="text">–</p>'


def test_a_fold_names_itself():
    assert fold_section("<more>", "x") == "<details><summary>&lt;more&gt;</summary>x</details>"
