package main

import (
	"github.com/weirlog/weir/grouping/app/command"
	"github.com/weirlog/weir/shared/process"
)

func main() {
	process.Commands[command.Commands]("weir-grouping",
		"The error grouping of Weir: it recognizes which of the errors in the logs are the same, counts them, and answers for the groups. "+
			"It needs Kafka and Postgres. Several may run against one database and share the work.")
}
