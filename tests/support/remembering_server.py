"""A model behind HTTP that has part of a benchmark by heart, and knows nothing of the rest."""

import json
import re
from pathlib import Path
from typing import Any

from judge_server import JudgeServer, request_text
from medthink.core.digest import seed_from

_NUMBERED = re.compile(r"^\d\. (.+)$", re.MULTILINE)
_LETTERED = re.compile(r"^([A-E])\. (.+)$", re.MULTILINE)


class RememberingServer(JudgeServer):
    """Remembers the cases of a file by the lot `share`, their options only as a sequence where `in_order` is set."""

    def __init__(self, file: Path, share: float, *, in_order: bool = False, favourite: str = "") -> None:
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        self.rows = {row["CLINICAL_HISTORY"]: row for row in rows}
        self.share = share
        self.in_order = in_order
        self.favourite = favourite
        super().__init__(lambda *_: "")

    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        content = json.dumps(self.say(request_text(body)))
        return {
            "id": "r", "object": "chat.completion", "model": body["model"],
            "choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        }  # fmt: skip

    def say(self, text: str) -> dict[str, Any]:
        history = next((one for one in self.rows if one in text), "")
        row = self.rows.get(history) or {}
        knows = bool(row) and seed_from("remembered", history) % 1000 < self.share * 1000
        if "case number" in text:
            return {"case_number": row["title"].split()[-1] if knows else str(seed_from("guess", text) % 20_000)}
        if "without their letters" in text:
            options = _NUMBERED.findall(text)
            if knows:
                letters = {value: letter for letter, value in row["options"].items()}
                return {"letters": [letters[option] for option in options]}
            return {"letters": sorted("ABCDE", key=lambda letter: seed_from(letter, text))}
        shown = dict(_LETTERED.findall(text))
        is_published = all(row["options"][letter] in (value, row["options"][letter] if value == "[hidden]" else "")
                           for letter, value in shown.items()) if row else False  # fmt: skip
        knows = knows and (is_published or not self.in_order)
        if "[hidden]" in text:
            missing = set(row["options"].values()) - set(shown.values()) if row else {""}
            return {"option": missing.pop() if knows else "Not known"}
        right = next((letter for letter, value in shown.items() if value == row.get("correct_answer_text")), "A")
        guess = self.favourite or "ABCDE"[seed_from("answer", text) % 5]
        return {"explanation": "so", "answer": right if knows else guess}
