-- The tables of a store of the first release, as SQLite keeps them: where migrations begin.
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE benchmarks (
	id INTEGER NOT NULL, 
	name VARCHAR(200) NOT NULL, 
	split VARCHAR(100) NOT NULL, 
	fingerprint VARCHAR(64) NOT NULL, 
	text_fingerprint VARCHAR(64) NOT NULL, 
	n_cases INTEGER NOT NULL, 
	added_at VARCHAR(20) NOT NULL, 
	CONSTRAINT pk_benchmarks PRIMARY KEY (id), 
	CONSTRAINT uq_benchmarks_text_fingerprint UNIQUE (text_fingerprint)
);
CREATE TABLE teams (
	id INTEGER NOT NULL, 
	name VARCHAR(200) NOT NULL, 
	added_at VARCHAR(20) NOT NULL, 
	CONSTRAINT pk_teams PRIMARY KEY (id), 
	CONSTRAINT uq_teams_name UNIQUE (name)
);
CREATE TABLE files (
	sha256 VARCHAR(64) NOT NULL, 
	size INTEGER NOT NULL, 
	data BLOB NOT NULL, 
	CONSTRAINT pk_files PRIMARY KEY (sha256)
);
CREATE TABLE rivals (
	benchmark_id INTEGER NOT NULL, 
	name VARCHAR(200) NOT NULL, 
	source VARCHAR(40) NOT NULL, 
	letters JSON NOT NULL, 
	CONSTRAINT pk_rivals PRIMARY KEY (benchmark_id, name), 
	CONSTRAINT fk_rivals_benchmark_id FOREIGN KEY(benchmark_id) REFERENCES benchmarks (id)
);
CREATE TABLE submissions (
	id INTEGER NOT NULL, 
	token VARCHAR(32) NOT NULL, 
	benchmark_id INTEGER NOT NULL, 
	team_id INTEGER NOT NULL, 
	file_sha256 VARCHAR(64), 
	status VARCHAR(20) NOT NULL, 
	status_at VARCHAR(20) NOT NULL, 
	deadline_at VARCHAR(20), 
	detail VARCHAR NOT NULL, 
	provenance VARCHAR(20) NOT NULL, 
	model VARCHAR(200) NOT NULL, 
	about JSON NOT NULL, 
	problems JSON NOT NULL, 
	received_at VARCHAR(20) NOT NULL, 
	published_at VARCHAR(20), 
	withdrawn_at VARCHAR(20), 
	allows_download BOOLEAN NOT NULL, 
	sent_by VARCHAR(100) NOT NULL, 
	lease_at VARCHAR(20), 
	tries INTEGER NOT NULL, 
	progress JSON, 
	preview JSON, 
	annotation VARCHAR NOT NULL, 
	flag VARCHAR NOT NULL, 
	CONSTRAINT pk_submissions PRIMARY KEY (id), 
	CONSTRAINT uq_submissions_benchmark_id_team_id_file_sha256 UNIQUE (benchmark_id, team_id, file_sha256), 
	CONSTRAINT uq_submissions_token UNIQUE (token), 
	CONSTRAINT fk_submissions_benchmark_id FOREIGN KEY(benchmark_id) REFERENCES benchmarks (id), 
	CONSTRAINT fk_submissions_team_id FOREIGN KEY(team_id) REFERENCES teams (id), 
	CONSTRAINT fk_submissions_file_sha256 FOREIGN KEY(file_sha256) REFERENCES files (sha256)
);
CREATE INDEX ix_submissions_status ON submissions (status);
CREATE TABLE scores (
	submission_id INTEGER NOT NULL, 
	scorer VARCHAR(20) NOT NULL, 
	made_at VARCHAR(20) NOT NULL, 
	scores JSON NOT NULL, 
	CONSTRAINT pk_scores PRIMARY KEY (submission_id, scorer), 
	CONSTRAINT fk_scores_submission_id FOREIGN KEY(submission_id) REFERENCES submissions (id)
);
CREATE TABLE events (
	id INTEGER NOT NULL, 
	submission_id INTEGER, 
	at VARCHAR(20) NOT NULL, 
	actor VARCHAR(200) NOT NULL, 
	what VARCHAR(40) NOT NULL, 
	detail JSON NOT NULL, 
	CONSTRAINT pk_events PRIMARY KEY (id), 
	CONSTRAINT fk_events_submission_id FOREIGN KEY(submission_id) REFERENCES submissions (id)
);
CREATE INDEX ix_events_submission_id ON events (submission_id);
CREATE TABLE rankings (
	digest VARCHAR(64) NOT NULL, 
	made_at VARCHAR(20) NOT NULL, 
	ranking JSON NOT NULL, 
	CONSTRAINT pk_rankings PRIMARY KEY (digest)
);
CREATE TABLE measures (
	submission_id INTEGER NOT NULL, 
	kind VARCHAR(20) NOT NULL, 
	made_at VARCHAR(20) NOT NULL, 
	body JSON NOT NULL, 
	CONSTRAINT pk_measures PRIMARY KEY (submission_id, kind), 
	CONSTRAINT fk_measures_submission_id FOREIGN KEY(submission_id) REFERENCES submissions (id)
);
CREATE TABLE accounts (
	id INTEGER NOT NULL, 
	name VARCHAR(100) NOT NULL, 
	shown_name VARCHAR(200) NOT NULL, 
	team_id INTEGER, 
	roles JSON NOT NULL, 
	password VARCHAR(300), 
	added_at VARCHAR(20) NOT NULL, 
	disabled_at VARCHAR(20), 
	CONSTRAINT pk_accounts PRIMARY KEY (id), 
	CONSTRAINT uq_accounts_name UNIQUE (name), 
	CONSTRAINT fk_accounts_team_id FOREIGN KEY(team_id) REFERENCES teams (id)
);
CREATE INDEX ix_accounts_team_id ON accounts (team_id);
CREATE TABLE identities (
	issuer VARCHAR(300) NOT NULL, 
	subject VARCHAR(300) NOT NULL, 
	account_id INTEGER NOT NULL, 
	added_at VARCHAR(20) NOT NULL, 
	CONSTRAINT pk_identities PRIMARY KEY (issuer, subject), 
	CONSTRAINT fk_identities_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);
CREATE INDEX ix_identities_account_id ON identities (account_id);
CREATE TABLE api_tokens (
	id INTEGER NOT NULL, 
	account_id INTEGER NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	hint VARCHAR(20) NOT NULL, 
	label VARCHAR(200) NOT NULL, 
	scopes JSON NOT NULL, 
	made_at VARCHAR(20) NOT NULL, 
	expires_at VARCHAR(20) NOT NULL, 
	used_at VARCHAR(20), 
	revoked_at VARCHAR(20), 
	CONSTRAINT pk_api_tokens PRIMARY KEY (id), 
	CONSTRAINT fk_api_tokens_account_id FOREIGN KEY(account_id) REFERENCES accounts (id), 
	CONSTRAINT uq_api_tokens_digest UNIQUE (digest)
);
CREATE INDEX ix_api_tokens_account_id ON api_tokens (account_id);
CREATE TABLE invitations (
	id INTEGER NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	account_id INTEGER, 
	team_id INTEGER, 
	roles JSON NOT NULL, 
	note VARCHAR(200) NOT NULL, 
	made_by VARCHAR(200) NOT NULL, 
	made_at VARCHAR(20) NOT NULL, 
	expires_at VARCHAR(20) NOT NULL, 
	used_at VARCHAR(20), 
	revoked_at VARCHAR(20), 
	CONSTRAINT pk_invitations PRIMARY KEY (id), 
	CONSTRAINT uq_invitations_digest UNIQUE (digest), 
	CONSTRAINT fk_invitations_account_id FOREIGN KEY(account_id) REFERENCES accounts (id), 
	CONSTRAINT fk_invitations_team_id FOREIGN KEY(team_id) REFERENCES teams (id)
);
CREATE INDEX ix_invitations_account_id ON invitations (account_id);
CREATE TABLE sessions (
	digest VARCHAR(64) NOT NULL, 
	account_id INTEGER NOT NULL, 
	made_at VARCHAR(20) NOT NULL, 
	seen_at VARCHAR(20) NOT NULL, 
	expires_at VARCHAR(20) NOT NULL, 
	CONSTRAINT pk_sessions PRIMARY KEY (digest), 
	CONSTRAINT fk_sessions_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);
CREATE INDEX ix_sessions_account_id ON sessions (account_id);
CREATE TABLE attempts (
	"key" VARCHAR(64) NOT NULL, 
	since VARCHAR(20) NOT NULL, 
	count INTEGER NOT NULL, 
	CONSTRAINT pk_attempts PRIMARY KEY ("key")
);
CREATE TABLE flows (
	digest VARCHAR(64) NOT NULL, 
	provider VARCHAR(100) NOT NULL, 
	detail JSON NOT NULL, 
	expires_at VARCHAR(20) NOT NULL, 
	CONSTRAINT pk_flows PRIMARY KEY (digest)
);
CREATE TABLE openings (
	reader VARCHAR(40) NOT NULL, 
	benchmark VARCHAR(64) NOT NULL, 
	case_id INTEGER NOT NULL, 
	at FLOAT NOT NULL, 
	CONSTRAINT pk_openings PRIMARY KEY (reader, benchmark, case_id)
);
CREATE TABLE answers (
	reader VARCHAR(40) NOT NULL, 
	benchmark VARCHAR(64) NOT NULL, 
	case_id INTEGER NOT NULL, 
	letter VARCHAR(1), 
	confidence INTEGER, 
	seconds FLOAT NOT NULL, 
	at FLOAT NOT NULL, 
	CONSTRAINT pk_answers PRIMARY KEY (reader, benchmark, case_id)
);
CREATE TABLE studies (
	id INTEGER NOT NULL, 
	token VARCHAR(32) NOT NULL, 
	name VARCHAR(200) NOT NULL, 
	"plan" JSON NOT NULL, 
	"key" JSON NOT NULL, 
	made_by VARCHAR(200) NOT NULL, 
	made_at VARCHAR(20) NOT NULL, 
	closed_at VARCHAR(20), 
	CONSTRAINT pk_studies PRIMARY KEY (id), 
	CONSTRAINT uq_studies_token UNIQUE (token)
);
CREATE TABLE study_readers (
	id INTEGER NOT NULL, 
	study_id INTEGER NOT NULL, 
	name VARCHAR(100) NOT NULL, 
	alias VARCHAR(20) NOT NULL, 
	is_adjudicator BOOLEAN NOT NULL, 
	training JSON NOT NULL, 
	trained_at VARCHAR(20), 
	revoked_at VARCHAR(20), 
	CONSTRAINT pk_study_readers PRIMARY KEY (id), 
	CONSTRAINT uq_study_readers_study_id_name UNIQUE (study_id, name), 
	CONSTRAINT fk_study_readers_study_id FOREIGN KEY(study_id) REFERENCES studies (id)
);
CREATE INDEX ix_study_readers_study_id ON study_readers (study_id);
CREATE TABLE sittings (
	id INTEGER NOT NULL, 
	study_id INTEGER NOT NULL, 
	reader_id INTEGER NOT NULL, 
	place INTEGER NOT NULL, 
	code VARCHAR(40) NOT NULL, 
	case_id INTEGER NOT NULL, 
	units INTEGER NOT NULL, 
	content JSON NOT NULL, 
	frozen JSON, 
	opened_at VARCHAR(20), 
	letter VARCHAR(1), 
	confidence INTEGER, 
	case_seconds FLOAT, 
	committed_at VARCHAR(20), 
	submitted_at VARCHAR(20), 
	holder VARCHAR(40), 
	held_until VARCHAR(20), 
	CONSTRAINT pk_sittings PRIMARY KEY (id), 
	CONSTRAINT uq_sittings_study_id_code UNIQUE (study_id, code), 
	CONSTRAINT fk_sittings_study_id FOREIGN KEY(study_id) REFERENCES studies (id), 
	CONSTRAINT fk_sittings_reader_id FOREIGN KEY(reader_id) REFERENCES study_readers (id)
);
CREATE INDEX ix_sittings_study_id ON sittings (study_id);
CREATE INDEX ix_sittings_reader_id ON sittings (reader_id);
CREATE TABLE marks (
	sitting_id INTEGER NOT NULL, 
	item VARCHAR(40) NOT NULL, 
	version INTEGER NOT NULL, 
	cells JSON NOT NULL, 
	seconds FLOAT NOT NULL, 
	saved_at VARCHAR(20) NOT NULL, 
	CONSTRAINT pk_marks PRIMARY KEY (sitting_id, item), 
	CONSTRAINT fk_marks_sitting_id FOREIGN KEY(sitting_id) REFERENCES sittings (id)
);
CREATE TABLE mark_events (
	sitting_id INTEGER NOT NULL, 
	"key" VARCHAR(64) NOT NULL, 
	item VARCHAR(40) NOT NULL, 
	version INTEGER NOT NULL, 
	cells JSON NOT NULL, 
	seconds FLOAT NOT NULL, 
	saved_at VARCHAR(20) NOT NULL, 
	CONSTRAINT pk_mark_events PRIMARY KEY (sitting_id, "key"), 
	CONSTRAINT fk_mark_events_sitting_id FOREIGN KEY(sitting_id) REFERENCES sittings (id)
);
INSERT INTO alembic_version VALUES ('0001');
