package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/weirlog/weir/shared/testenv/apache"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	cache, err := apache.DefaultCache()
	if err == nil {
		var jars string
		jars, err = apache.Jars(ctx, cache)
		fmt.Println(jars)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kafka-jars:", err)
		os.Exit(1)
	}
}
