"""The providers' own SDKs drive the server that our batches are tested on: it speaks as they expect."""

import json

import pytest
from batch_server import BatchServer

from lazily import Lazily

pytestmark = pytest.mark.filterwarnings("ignore")  # the SDKs' own warnings are theirs
openai = Lazily("openai")
anthropic = Lazily("anthropic")
genai = Lazily("google.genai")

CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture
def server():
    with BatchServer(faults=["", "expire:1"]) as one:
        yield one


def test_openai(server, tmp_path):
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0)
    lines = [{"custom_id": key, "method": "POST", "url": "/v1/chat/completions", "body": CHAT} for key in ("a", "b")]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, lines)))
    for _ in range(2):
        with (tmp_path / "in.jsonl").open("rb") as stream:
            file = client.files.create(file=stream, purpose="batch")
        job = client.batches.create(
            input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"medthink": "x"}
        )
    jobs = list(client.batches.list(limit=1))
    assert [one.id for one in jobs] == ["batch_1", "batch_0"] and {one.metadata["medthink"] for one in jobs} == {"x"}
    job = client.batches.retrieve(job.id)
    assert (job.status, job.request_counts.total) == ("expired", 2)
    done = json.loads(client.files.content(job.output_file_id).text)
    assert openai.types.chat.ChatCompletion.model_validate(done["response"]["body"]).choices[0].finish_reason == "stop"
    assert json.loads(client.files.content(job.error_file_id).text)["error"]["code"] == "batch_expired"
    assert client.batches.cancel(job.id).id == job.id


def test_anthropic(server):
    client = anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0)
    params = {"max_tokens": 9, **CHAT}
    for _ in range(2):
        job = client.messages.batches.create(requests=[{"custom_id": key, "params": params} for key in ("a", "b")])
    assert [one.id for one in client.messages.batches.list(limit=1)] == ["batch_1", "batch_0"]
    job = client.messages.batches.retrieve(job.id)
    assert job.processing_status == "ended" and job.request_counts.expired == 1
    assert client.messages.batches.cancel(job.id).id == job.id
    # The SDK would fetch the results where `results_url` says; ours goes by the same path below the base URL.
    raw = client.get(f"/v1/messages/batches/{job.id}/results", cast_to=str)
    results = [
        anthropic.types.messages.MessageBatchIndividualResponse.model_validate_json(line) for line in raw.splitlines()
    ]
    assert {one.custom_id: one.result.type for one in results} == {"a": "succeeded", "b": "canceled"}


def test_gemini(server, tmp_path):
    client = genai.Client(api_key="k", http_options={"base_url": server.url, "api_version": "v1beta"})
    request = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    lines = [{"key": key, "request": request} for key in ("a", "b")]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, lines)))
    file = client.files.upload(file=str(tmp_path / "in.jsonl"), config={"mime_type": "application/jsonl"})
    job = client.batches.create(model="gemini-3-pro", src=file.name, config={"display_name": "x"})
    assert [(one.name, one.display_name) for one in client.batches.list(config={"page_size": 1})] == [
        ("batches/b0", "x")
    ]
    job = client.batches.get(name=job.name)
    assert job.state.name == "JOB_STATE_SUCCEEDED"
    data = client.files.download(file=job.dest.file_name).decode()
    rows = {row["key"]: row["response"] for row in map(json.loads, data.splitlines())}
    assert set(rows) == {"a", "b"}
    assert genai.types.GenerateContentResponse.model_validate(rows["a"]).candidates[0].finish_reason == "STOP"
    client.batches.cancel(name=job.name)
