"""The words by which replies, in several languages, say that what follows is their answer."""

import re


def _any(*words: str) -> str:
    return "(?:" + "|".join(words) + ")"


# Nouns that announce an answer: the letter may follow them at once ("Answer B").
ANSWER_NOUN = _any(
    "answers?", "antwort", "lösung", "réponse", "respuesta", "risposta", "resposta", "antwoord", "odpowiedź", "ответ",
    "cevap", "yanıt", "svar(?:et)?", "答案", "答え", "正解", "解答", "回答", "정답", "답변?",
    "الإجابة", "الجواب", "उत्तर", "đáp án", "jawaban", "odpověď", "απάντηση", "תשובה",
)  # fmt: skip
# Nouns that announce one only with a link ("the diagnosis is …", "Option: …").
OTHER_NOUN = _any(
    "final", "choice", "option", "diagnosis", "selection", "selected", "letter",
    "response", "diagnose", "auswahl", "wahl", "diagnostic", "choix",
    "opción",
    "diagnóstico", "elección", "opzione", "diagnosi", "scelta", "alternativa", "opção", "escolha", "诊断", "診断",
    "正确的?选项", "正確的?選項",
)  # fmt: skip
_AFTER = _any(
    "finale?", "correct[ea]?", "corretta", "correcta", "correta", "exacte", "esatta", "certa", "giusta", "définitive",
    "definitiva", "le plus probable", "más probable", "più probabile", "mais provável", "retenue?", "letter", "choice",
    "option", "końcowa", "prawidłowa", "الصحيحة", "الصحيح", "النهائية", "đúng", "yang benar",
    "(?:for|in) this (?:case|patient)", "here",
    "(?:among|of|from) the (?:given |listed |five )?(?:options|choices)", "that (?:best fits|fits best|fits)",
)  # fmt: skip
_LINK = _any(
    ":", "=", "->", "→", "-", "是", "为", "為", "应为", "应是", "选", "は", "은", "는", "هي", "هو", "है", "là", "adalah",
    r"(?:is|was|would be|should be|must be|has to be|ist|wäre|lautet|est|serait|es|sería|è|e'|sarebbe|é|seria|är|er)"
    r"(?![a-zà-ÿ])", "(?<=odpowiedź )to ", "(?<=końcowa )to ",
)  # fmt: skip

# `\b` is of no use beside scripts without spaces, so words are only kept from starting inside a Latin word.
ANNOUNCED = re.compile(
    rf"(?<![a-zà-ÿ])(?:(?P<answer>{ANSWER_NOUN})|{OTHER_NOUN})(?:\s{{1,2}}{_AFTER}){{0,3}}"
    rf"\s{{0,2}}(?:\([^()\n]{{0,40}}\)\s{{0,2}})?(?P<link>{_LINK})?",
    re.IGNORECASE,
)
CHOSEN = re.compile(
    r"(?<![a-zà-ÿ])(?:"
    r"(?:i|we)(?:'d|'ll| would| will| am going to| therefore| thus| must)?\s(?:choose|select|pick|go with|opt for"
    r"|answer|vote for)"
    r"|i(?:'d| would)? (?:think|believe|say)(?: that)?(?: it is| it's| this is| it would be)?|going with"
    r"|(?:i'm|i am) (?:choosing|selecting|picking)|my (?:pick|vote|guess) is"
    r"|most (?:likely|probable):"
    r"|ich (?:wähle|nehme|entscheide mich für)|richtig ist|korrekt ist|zutreffend ist|je (?:choisis|retiens|opte pour)"
    r"|elijo|escojo|selecciono|me quedo con|scelgo|opto per|escolho|marco|ik kies|wybieram|я выбираю|выбираю"
    r"|(?:应|應|我)?(?:选择|選擇|选|選ぶ)(?:是|为)?)\s{0,2}:?",
    re.IGNORECASE,
)
CONCLUDED = re.compile(
    r"(?<![a-z])(?:therefore|thus|hence|so|in conclusion|conclusion|daher|donc|por lo tanto|quindi"
    r"|portanto|因此|所以)"
    r"[,:]?\s{0,2}(?:it is |it's |it must be |option |choice )?(?=\W{0,3}[A-Z]\W{0,3}(?:\s*$|[.!]))",
    re.IGNORECASE | re.MULTILINE,
)
FAVOURED = re.compile(
    r"(?<![a-z])(?:(?:most|best|highly|more) (?:consistent|compatible|in keeping|in line) with|best explained by"
    r"|most likely (?:represents?|due to))",
    re.IGNORECASE,
)
_PRAISE = (
    r"(?:\s{1,2}\([^()\n]{0,120}\))?,?\s{1,2}(?:"
    r"(?:is|would be|remains|seems|appears|ist|est|es|è|é)\s{1,2}"
    r"(?:clearly |therefore |thus |hence |by far |also |die |la |le |a |o |the )?"
    r"(?:single )?(?:correct|right|best|most likely|most probable|most consistent|most plausible|most appropriate"
    r"|answer|my (?:final )?(?:answer|choice|pick)"
    r"|richtig|korrekt|wahrscheinlichste|correcte|bonne|plus probable|correcta|más probable|corretta"
    r"|più probabile|correta|mais provável)"
    r"|best (?:fits|explains|matches|accounts)|fits best|(?:fits|explains|matches) [^.\n]{0,40}\bbest\b)"
    # What holds under a condition only is not said of this patient.
    r"(?![^.!?\n]{0,20}(?<![a-z])(?:if|unless|provided|wenn|falls)(?![a-z]))"
)
# "(C) is correct", "Option B fits best": the letter stands before the words. Only a letter on its own starts a match.
PRAISED = re.compile(rf"(?<![A-Za-z0-9])([A-Za-z])[\"')\].]{{0,2}}{_PRAISE}", re.IGNORECASE)
# The same words, right behind an option's text.
PRAISE = re.compile(_PRAISE, re.IGNORECASE)
# Right before such a letter: the word that makes it an option's, whatever else stands before.
NAMED = re.compile(
    r"(?:option|choice|answer|antwort|réponse|opción|respuesta|opzione|risposta|alternativa|resposta)\s{1,2}[\"'(\[]{0,2}$",
    re.IGNORECASE,
)
FINAL = re.compile(
    r"final|endgültig|abschließend|définiti|definiti|最终|最終|최종|окончательн|końcowa|النهائية", re.IGNORECASE
)
# Before a claim, in its own clause: words under which it is not the reply's own answer.
DISOWNED = re.compile(
    r"(?<![a-zà-ÿ])(?:not|never|if|whether|unless|might|could|may|cannot|initial(?:ly)?|at first|first thought|tempting"
    r"|some|someone|many|readers|people|common|popular|wrong|incorrect|differential|previous"
    r"|would have|least|second|next|alternative|another|other|nicht|kein|wenn|falls|ob|pas|nunca|não|non|nie|если)"
    r"(?![a-zà-ÿ])|n't|n’t|如果|若|不|もし|ではな",
    re.IGNORECASE,
)
# At the head of a claim's sentence: words that make the whole of it a supposition.
SUPPOSED = re.compile(
    r"\s*(?:if|unless|were|had|suppose|supposing|assuming|is|are|was|could|might|wenn|falls|ist|si|est-ce|se)(?![a-zà-ÿ])|\s*(?:如果|若|もし|만약)",
    re.IGNORECASE,
)
# "Not B but C": what is denied goes first.
NOT_THIS_BUT = (
    r"(?:(?:not|nicht|no|pas)(?=[\s\"'(])|不是)\s{0,2}[\"'(]?[A-Z][\"')]?,?"
    r"\s{0,2}(?:but(?: rather)?|sondern|sino|mais|而是)(?=\W|[A-Z])"
)
# After a claim: words that take it back.
DENIED = re.compile(
    r"\s?(?:ではな|ではあり|じゃな|가 아|이 아|不是|不对)"
    r"|[\s.:;,)\]\"'(-]{0,4}(?:unlikely|less likely|not likely|improbable|excluded|ruled out|rejected|wrong|incorrect"
    r"|unwahrscheinlich|ausgeschlossen|falsch|exclue?|excluida|esclusa|excluída)(?![a-zà-ÿ])"
    r"|[^.\n]{0,40}(?<![a-z])(?:but (?:it|this|that) is|but (?:really|actually)|otherwise)(?![a-z])|"
    r"[\"')\].,*]{0,3}\s{0,2}(?:\([^()\n]{0,120}\)\s{0,2})?"
    r"(?:is|was|are|seems|appears|would be|can be|can|could be|ist|est|es|è|é|scheidet|kann)\s{0,2}"
    r"(?:also |very |rather |clearly |therefore |n'|ne )?"
    r"(?:not|n't|incorrect|wrong|false|unlikely|less|the least|least|excluded|ruled|out|improbable|impossible"
    r"|inconsistent|nicht|falsch|unwahrscheinlich|ausgeschlossen|aus|pas|fausse?|incorrecta?|improbable|sbagliata|errada"
    r"|errata|esclusa)",
    re.IGNORECASE,
)
REVISED = re.compile(
    r"(?<![a-z])(?:wait|hold on|on second thou?ghts?|correction|scratch that|i was wrong|i take that back"
    r"|i made an? (?:error|mistake)"
    r"|let me (?:re-?consider|re-?think|re-?evaluate|re-?check|think again|correct)"
    r"|actually,? (?:no|it|the answer|i))(?![a-z-])",
    re.IGNORECASE,
)
