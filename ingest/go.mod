module github.com/weirlog/weir/ingest

go 1.26.0

require github.com/weirlog/weir/shared v0.0.0

require (
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/pgx/v5 v5.12.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	golang.org/x/text v0.42.0 // indirect
)

replace github.com/weirlog/weir/shared => ../shared
