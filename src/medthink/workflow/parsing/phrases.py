"""The phrases, in several languages, with which replies announce their answer."""

import re


def _any(*words: str) -> str:
    return "(?:" + "|".join(words) + ")"


# Nouns that announce an answer: the letter may follow them at once ("Answer B").
ANSWER_NOUN = _any(
    "answers?", "antwort", "lösung", "réponse", "respuesta", "risposta", "resposta", "antwoord", "odpowiedź", "ответ",
    "cevap", "doğru seçenek", "yanıt", "svar(?:et)?", "答案", "答え", "正解", "解答", "回答", "정답", "(?<!오)답변?",
    "الإجابة", "الجواب", "उत्तर", "đáp án", "jawaban", "odpověď", "απάντηση", "תשובה",
)  # fmt: skip
# Nouns that announce one only with a link ("the diagnosis is …", "Option: …").
OTHER_NOUN = _any(
    "final", "choice", "option", "diagnosis", "selection", "selected", "letter",
    "response", "impression", "best (?:guess|fit|match)", "correct(?=:)", "prediction", "verdict", "output", "result",
    "decision", "chosen(?=:)", "pick", "guess", "label(?=:)", "bottom line", "tl;?dr", "dx", "diagnose",
    "auswahl", "wahl", "diagnostic", "choix",
    "opción",
    "diagnóstico", "elección", "opzione", "diagnosi", "scelta", "alternativa", "opção", "escolha", "диагноз",
    "вариант", "tanı", "诊断", "診断名?", "结论", "答(?=[:：])", "我(?:认为|的答案)", "考えられるの", "진단",
    "(?:正确|正確|最佳|最优)的?(?:选项|選項)", "(?:highest|greatest) (?:probability|likelihood|confidence)",
)  # fmt: skip
_AFTER = _any(
    "finale?", "correct[ea]?", "corretta", "correcta", "correta", "exacte", "esatta", "certa", "giusta", "définitive",
    "definitiva", "le plus probable", "más probable", "più probabile", "mais provável", "retenue?", "letter",
    "choice",
    "option", "końcowa", "prawidłowa", "الصحيحة", "الصحيح", "النهائية", "đúng", "yang benar",
    "(?:for|in|to) (?:this|the) (?:case|patient|question)", "here", "(?<=[a-z]), (?:then|therefore|thus),",
    "(?:among|of|from) the (?:given |listed |five )?(?:options|choices)", "that (?:best fits|fits best|fits)",
)  # fmt: skip
_LINK = _any(
    ":", "=", "->", "-", "就?是", "应该?选", "为", "為", "应为", "应是", "选", "は", "은", "는",
    "هي", "هو", "है", "là", "adalah",
    r"(?:is|was|will be|would be|should be|must be|has to be|ist|wäre|lautet|est|serait|es|sería|è|e'|sarebbe|é"
    r"|seria|är|er)"
    r"(?![a-zà-ÿ])", "(?<=odpowiedź )to ", "(?<=końcowa )to ",
)  # fmt: skip

# `\b` is of no use beside scripts without spaces, so words are only kept from starting inside a Latin word.
ANNOUNCED = re.compile(
    rf"(?<![a-zà-ÿ])(?:(?P<answer>{ANSWER_NOUN})|{OTHER_NOUN})(?:\s{{1,2}}{_AFTER}){{0,3}}"
    rf"[\]\s]{{0,2}}(?:\([^()\n]{{0,40}}\)\s{{0,2}})?(?P<link>{_LINK})?",
    re.IGNORECASE,
)
CHOSEN = re.compile(
    r"(?<![a-zà-ÿ])(?:"
    r"(?:eliminating|excluding) [^.\n]{1,80} leaves|chang(?:e|ed|ing) my answer (?:from \S{1,4} )?to"
    r"|(?:i|we)(?:'d|'ll| would| will| am going to| therefore| thus| must)?\s(?:choose|select|pick|go with|opt for"
    r"|answer|vote(?: for)?|settle on|bet on|conclude:|favou?r|go for|take|have to (?:go with|choose|pick|say)"
    r"|submit)"
    r"|let's go with|inclined to say|(?:put )?my money(?:'s| is)? on|my vote goes to"
    r"|it can only be|(?:that|which|this) makes it|(?:it|this) (?:has to|must) be"
    r"|i(?:'d|'ll| would| will)? (?:think|believe|say)(?: that)?(?: it is| it's| this is| it would be)?|going with"
    r"|leaning(?: towards?)?|lean towards?|(?:this|that|which) leaves(?: only)?|left with"
    r"|(?:i'm|i am) (?:choosing|selecting|picking)|am ehesten liegt|es handelt sich(?: am ehesten| hier)? um"
    r"|il s'agit (?:bien )?d(?:e |')|se trata de|si tratta di|trata-se de|het gaat om"
    r"|my (?:best )?(?:pick|vote|guess) is"
    r"|most (?:likely|probable):"
    r"|somit ist(?= [A-Z] richtig)|(?:therefore|thus|hence|so)(?= option [A-Z] is (?:chosen|selected))"
    r"|ich würde(?= [A-Z] (?:wählen|nehmen))|ich (?:wähle|nehme|entscheide mich für)|richtig ist|korrekt ist"
    r"|zutreffend ist|j'opte pour|je (?:choisis|retiens"
    r"|opte pour)"
    r"|elijo|escojo|selecciono|me quedo con|scelgo|opto per|escolho|marco|(?:ik kies|kies ik)(?: voor)?|chọn|wybieram"
    r"|я выбираю|выбираю"
    r"|(?:应该?|應該?|我)?(?:选择|選擇|选|選ぶ)(?:是|为)?)\s{0,2}:?",
    re.IGNORECASE,
)
CONCLUDED = re.compile(
    r"(?<![a-z])(?:therefore|thus|hence|so|in conclusion|conclusion|in summary|overall|zusammenfassend|fazit|daher"
    r"|somit|dus"
    r"|donc|por lo tanto|quindi"
    r"|portanto|因此|所以)"
    r"[,:]?\s{0,2}(?:it is |it's |it must be |option |choice )?(?=\W{0,3}[A-Z]\W{0,3}(?:\s*$|[.!]))",
    re.IGNORECASE | re.MULTILINE,
)
FAVOURED = re.compile(
    r"(?<![a-z])(?:(?:most|best|highly|more) (?:consistent|compatible|in keeping|in line) with|best explained by"
    r"|most likely (?:represents?|due to)|(?:this|that|which) (?:corresponds to|matches|points to)|compatibile con"
    r"|en faveur d(?:e |')|(?:spr[ei]cht|sprechen|passt|passen) (?:am (?:ehesten|besten) )?(?:für|zu)"
    r"|am wahrscheinlichsten ist"
    r"|(?:son )?compatibles? (?:con|avec|com)|最(?:符合|可能的?是)|(?<!不)考虑为?|最も可能性が高いのは|"
    r"diagnostic of|pathognomonic (?:of|for)|favou?rs?|clinch(?:es)?|supports?|is that of"
    r"|(?:everything|all(?: the)?(?: signs| findings)?) points? to(?:wards?)?|most (?:likely|probably) (?:has"
    r"|have|suffers from|represents|reflects)"
    r"|(?:images?|imaging|findings?|features|appearances?|ct|mri) (?:clearly |rather |best )?(?:shows?"
    r"|indicates?|fits?|match(?:es)?|points? to))(?!(?<=[a-z])[a-z])",
    re.IGNORECASE,
)
_PRAISE = (
    r"(?:\s{1,2}\([^()\n]{0,120}\))?,?\s{1,2}(?:"
    r"(?:is|would be|remains|seems|appears(?: to be)?|looks|ist|est|es|è|é)\s{1,2}"
    r"(?:clearly |therefore |thus |hence |by far |also |am |die |la |le |lo |a |o |the )?(?:respuesta "
    r"|risposta |resposta |réponse |antwort )?"
    r"(?:single )?(?:correct|right|best|better|favou?red|the leading|the diagnosis|most likely|most probable"
    r"|most consistent|most plausible|most appropriate"
    r"|most \w+ (?:choice|option|answer|diagnosis|explanation)|answer|chosen|selected|supported by"
    r"|juist|my (?:final )?(?:answer|choice|pick|diagnosis)"
    r"|richtig|korrekt|wahrscheinlichsten?|correcte|bonne|plus probable|correcta|más probable|corretta"
    r"|più probabile|correta|mais provável)"
    r"|wins|is what i(?:'d| would) (?:choose|pick|answer)|(?:explains|fits) (?:all|everything)(?! but| except)"
    r"|best (?:fits|explains|matches|accounts)|fits best|(?:fits|explains"
    r"|matches) [^.\n]{0,40}\bbest\b)"
    r"(?!-\w|\s(?:seen|visible|visuali|appreciated|shown|depicted|assessed|evaluated|about|known|to another))"
    # What holds under a condition only is not said of this patient.
    r"(?![^.!?\n]{0,20}(?<![a-z])(?:if|unless|provided|wenn|falls)(?![a-z]))"
)
_PRAISE_AFTER_LETTER = (
    rf"(?:{_PRAISE}|\s?(?:选项|選項)?(?:是)?(?:最)?(?:正确|正確|恰当|合适|符合|可能(?!性)|对(?![于照比称]))"
    rf"|\s?(?:が|は)\s?(?:最も(?:適切|可能性が高|妥当)|正しい"
    rf"|考え(?!にく|難)|正解(?!で[はな]))"
    r"|\s?(?:を選[びぶ択]|と診断)(?!でき|しな|せ)|번?\s?를 선택"
    r"|번?\s?(?:이|가|은|는)\s?(?:가장 적절|가장 가능성|맞|정답(?!이 아|은 아)))"
)
# "(C) is correct", "Option B fits best": the letter comes before the words. Only a letter on its own starts a match.
PRAISED = re.compile(rf"(?<![A-Za-z0-9])([A-Za-z])[\"')\].]{{0,2}}{_PRAISE_AFTER_LETTER}", re.IGNORECASE)
# The same words, right behind an option's text.
PRAISE = re.compile(_PRAISE_AFTER_LETTER, re.IGNORECASE)
# The same without a word of praise, in East Asian sentences whose verb comes last.
IS_IT = re.compile(
    r"\s?(?:です|である|だ[。\n]|と(?:考え|診断|判断|な)(?!にく|難|られな)|が(?:最も|正|適)|を(?:選|第一)"
    r"|は正し|입니다|이다|(?:번|로)\s?"
    r"|[이가은는]\s?(?:정답(?!이 아|은 아)|맞|가장)|[을를]\s?(?:선택|고른)|(?:选项|選項)?(?:是)?(?:最|正确|正確"
    r"|对(?![于照比称]))|可能性(?:最)?大)"
)
# Right before such a letter: the word that makes it an option's, whatever else comes before.
NAMED = re.compile(
    r"(?:option|choice|answer|antwort|réponse|opción|respuesta|opzione|risposta|alternativa"
    r"|resposta)\s{1,2}[\"'(\[]{0,2}$",
    re.IGNORECASE,
)
FINAL = re.compile(
    r"final|endgültig|abschließend|définiti|definiti|最终|最終|최종|окончательн|końcowa|النهائية", re.IGNORECASE
)
# Before a claim, in its own clause: words under which it is not the reply's own answer.
DISOWNED = re.compile(
    r"(?<![a-zà-ÿ])(?:not|never|if|whether|unless|might|could|may|cannot|initial(?:ly)?|first\s*$|at first"
    r"|first thought|tempting"
    r"|some|someone|many|readers|people|common|popular|wrong|incorrect|differential|previous"
    r"|doubt(?:s|ful)?|disagree|provisional(?:ly)?|preliminary|draft|tentative(?:ly)?|rejected|excluded|eliminated"
    r"|discarded"
    r"|anything but|everything but|possible|remaining|distractor|original|referral|referring|dangerous"
    r"|no(?! doubt)|nothing|none|hardly"
    r"|without|neither|nor|would(?: be)?\s*$"
    r"|would have|least|second|next|alternative|another|other|nicht|kein\w{0,2}|könnten?|möglich\w{0,2}"
    r"|ausgeschlossen|verdacht|falsche?|mauvaise|verkeerd|yanlış|sai|rule[ds]? out|wenn|falls|ob|pas|nunca|não|non"
    r"|nie|если)"
    r"(?![a-zà-ÿ])|n't|既往|需|疑|गलत|неправильн|неверн|错误|錯誤|干扰|如果|若|不|未必|难|難|排除|并非|もし"
    r"|ではな|bezweif",
    re.IGNORECASE,
)
# In a claim's own clause: somebody else who says it.
OTHERS = re.compile(
    r"(?<![a-z])(?:users?|you|patients?|physicians?|clinicians?|surgeons?|doctors?|colleagues?|residents?"
    r"|radiologists?"
    r"|referr\w{1,8}|reports?|juniors?|experts?|models?|keys?|lecteurs?|médecins?|collègues?|confrères?"
    r"|colegas?|collegh?[ai]|kollegen?|arzt|médicos?)(?![a-z])"
    r"[^.!?\n]{0,30}?(?<![a-z])(?:suggest|said|says?|think|thought|believe|claim|ask|propos|suspect|answer"
    r"|stat(?:e|ing)"
    r"|considers|argue|assum|favou?r|wrote|writes|mean|vermut|pens)"
    r"|(?:用户|患者|医生|医師|有人|사용자|환자|의사)[^。\n]{0,12}(?:认为|認為|建议|怀疑|考え|생각)",
    re.IGNORECASE,
)
# Before a form or a claim, on its line: it shows how to answer and is no answer.
TEMPLATE = re.compile(
    r"(?<![a-z])(?:e\.g\.|for example|for instance|example:?|such as"
    r"|^\s{0,3}(?:(?:the|your|expected|required|output|answer|response|reply) ){0,3}format\b"
    r"|use the (?:\w+ )?format|looks? like"
    r"|(?:reply|respond) (?:as|with|in)"
    r"|(?:please|only|must|should) (?:return|reply|respond|answer|provide|output|give)[^\n]{0,60})[^\n.]{0,20}$"
    r"|(?:例如|示例|例：)[^\n。]{0,20}$",
    re.IGNORECASE,
)
TEMPLATE_AFTER = re.compile(r"[^\n.]{0,20}(?:for (?:example|instance)|e\.g\.)", re.IGNORECASE)
# At the head of a claim's sentence: words that make the whole of it a supposition.
SUPPOSED = re.compile(
    r"\s*(?:(?:according to|as per|per) (?:the |your |my )?(?:user|report|hint|key|patient|clinic|referr|radiolog"
    r"|colleague)"
    r"|(?!if (?:(?:i|one) (?:really )?(?:must|ha(?:ve|d) to|were to)|(?:forced|pressed) to) (?:choose|pick"
    r"|guess|decide))(?:if|unless|were"
    r"|had|(?:let us |let's |let me )?(?:suppose|assume|imagine|pretend)|supposing|assuming|is|are|was|could"
    r"|might|wenn|falls|ist|si|est-ce|se)(?![a-zà-ÿ]))|\s*(?:如果|若"
    r"|もし|만약)",
    re.IGNORECASE,
)
# "Not B but C": what is denied goes first.
NOT_THIS_BUT = (
    r"(?:(?:not|nicht|no(?: es)?|(?:ce n'est )?pas|non è)(?=[\s\"'(])|不是)\s{0,2}[\"'(]?[A-Z][\"')]?,?"
    r"(?: after all)?[\s;]{0,2}(?:(?:but(?: rather)?|sondern|sino|mais|而是)(?=\W|[A-Z])|(?<=;)\s)"
    r"|[A-Z]\s?(?:(?:가|이) 아니라|ではなく)[,、]?"
)
# After a claim: words that take it back.
DENIED = re.compile(
    r"\s?(?![^。.,，、\n]{0,8}不[选選是]\s?[A-Z])[^。.,，、:：\n]{0,10}?"
    r"(?:还是|還是|な[いく]|なかった|ません|でしょうか|とは限|不|错|錯|誤|有误|否|并非|(?<!最)可能(?!性)|않"
    r"|오답|とは限"
    r"|排除|除外|間違|にくい|可能性小|可能性低|아니|아닙|틀|낮|제외|नहीं|değil)"
    r"|[\s.:;,)\]\"'(-]{0,4}(?:none|neither|nothing|unknown)(?![a-z])|\.{2,3}\s?[A-Z](?![a-z])"
    r"|,?\s?\(?(?:treated|in remission|resected)(?![a-z])|\s?[-:]\s(?:no|not|against)(?![a-z])"
    r"|,?\s(?:only )?(?:if|unless|provided|assuming|depending|wenn|falls)(?![a-z])"
    r"|[\s.:;,)\]\"'(-]{0,4}(?:unlikely|less likely|not likely|improbable|excluded|ruled out|rejected|wrong|incorrect"
    r"|unwahrscheinlich|ausgeschlossen|falsch|exclue?|excluida|esclusa|excluída)(?![a-zà-ÿ])"
    r"|[^.\n]{0,40}(?<![a-z])(?:but (?:it|this|that|(?:option )?[a-z]) (?:is|fits|seems)|but (?:really|actually)"
    r"|otherwise)(?![a-z])|"
    r"[\"')\].,*]{0,3}\s{0,2}(?:\([^()\n]{0,120}\)\s{0,2})?"
    r"(?:is|was|are|seems|appears|would be|can be|can|could be|ist|wäre|est|es|è|é|está|jest|scheidet|kann)\s{0,2}"
    r"(?:also |very |rather |clearly |therefore |n'|ne )?"
    r"(?:not|n't|incorrect|wrong|false|unlikely|less|the least|least|excluded|ruled|out|improbable|impossible"
    r"|inconsistent|nicht|falsch|unwahrscheinlich|ausgeschlossen|aus|pas|fausse?|incorrecta?|improbable|sbagliata"
    r"|errada"
    r"|errata|esclusa|błędn|niepraw)",
    re.IGNORECASE,
)
REVISED = re.compile(
    r"(?<![a-z])(?:wait|hold on|on second (?:thou?ghts?|look|reading)|on reflection|after (?:a )?(?:review"
    r"|reflection)|revised"
    r"|correction|scratch that|i was wrong|i take that back"
    r"|i made an? (?:error|mistake)"
    r"|let me (?:re-?consider|re-?think|re-?evaluate|re-?check|think again|correct)"
    r"|actually,? (?:no|it|the answer|i))(?![a-z-])|(?:[;,.-]\s?sorry,?|(?:[;(-]|\.\.)\s?no,)\s|(?:just|equally"
    r"|every bit) (?:as )?(?:likely|possible|plausible|good)|(?:can't|cannot) decide"
    r"|could be persuaded|hmm|更正|改为"
    r"|訂正|정정",
    re.IGNORECASE,
)
