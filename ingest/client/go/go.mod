module github.com/weirlog/weir/ingest/client/go

go 1.25.0
