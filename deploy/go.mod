module github.com/weirlog/weir/deploy

go 1.26.0

require (
	github.com/weirlog/weir/grouping v0.0.0
	github.com/weirlog/weir/ingest v0.0.0
	github.com/weirlog/weir/ledger v0.0.0
	github.com/weirlog/weir/shared v0.0.0
	github.com/weirlog/weir/tenants v0.0.0
)

require github.com/alecthomas/kong v1.17.0 // indirect

replace (
	github.com/weirlog/weir/grouping => ../grouping
	github.com/weirlog/weir/ingest => ../ingest
	github.com/weirlog/weir/ledger => ../ledger
	github.com/weirlog/weir/shared => ../shared
	github.com/weirlog/weir/tenants => ../tenants
)
