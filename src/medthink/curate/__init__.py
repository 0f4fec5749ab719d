"""From raw teaching cases to a fair benchmark: one module per stage, one explained decision per case.

**A stage** is a class in `stages/NAME.py` that the module also names `STAGE`, and one line in `settings.STAGES`, beside
its settings; the order there is the order of a build. Everything else reads that table: `medthink curate NAME`, the
tables of a plan, the decision log, the counts, the review sheet, the funnel and the data card.

    class TimelineSettings(ModelSettings, frozen=True, kw_only=True):  # StageSettings if no model is ever asked
        fewest: Annotated[int, Meta(description="Imaging events that make a timeline.", ge=2)] = 2

    class TimelineStage(Stage[TimelineSettings]):
        name = "timeline"

        async def decide(self, draft: Draft, ask: StageModel | None, rulings: CaseRulings) -> StageResult:
            quotes = find_events(draft)                     # evidence: `Quote`s, verified before they are written
            if ask is not None and quotes:
                prompt = curate_prompt("timeline", draft.id, data={…}, form={"events": list_of(TEXT)}, by_rules={…})
                reply = await ask(prompt, TimelineForm, draft.id)          # Unanswered: leave it; the case is undecided
            return pass_case(draft.with_reference(is_longitudinal=True, …), reason="two-events", evidence=quotes)

STAGE = TimelineStage

- Settings are flags and fields of a plan alike; their help is the `Meta` description. Paths go through `context.path`.
- `decide` ends in `pass_case` or `drop_case`. What changed is found by comparing; the stage does not list it.
  What a person must decide is a question: `rulings.settle(hold_case(…))` continues where it was answered, and
  `value_of` reads the value they gave. A case with an open question leaves the build until someone answers.
- If a decision needs all cases (how frequent a word is), `survey` reads them once, storing little of each.
- A stage without its model lists in `not_covered` what it did not look for. It never says "clean".
- The text of a prompt is in `prompts/NAME.md`; data is fenced; the reply's form is a `ReplyForm`.
- `version` rises when the stage would decide differently; `inputs` names other files the outcome depends on.
- Values that a later stage needs are stored with `draft.with_mark(name, …)`.

Tests: `tests/unit/curate/test_NAME.py`, with `tests/support/drafts.py` for drafts and stages in one line.
"""
