package main

import (
	"github.com/weirlog/weir/shared/process"
	"github.com/weirlog/weir/tenants/app/command"
)

const description = "Organizations, projects, API keys, service tokens and members of Weir. It needs Kafka and Postgres; " +
	"every setting is a flag or an environment variable. Without a command it serves. The other commands work on the same " +
	"database and broker, beside the processes that serve, and what they do is in the audit."

func main() {
	process.Commands[command.Commands]("tenants", description)
}
