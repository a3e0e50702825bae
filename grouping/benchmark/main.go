package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

func main() {
	data := flag.String("data", os.Getenv("DATA"), "file with labelled errors, JSON lines")
	flag.Parse()
	if err := run(os.Stdout, *data); err != nil {
		fmt.Fprintln(os.Stderr, "benchmark:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, path string) error {
	reports, err := load(path)
	if err != nil {
		return err
	}
	b := newBench(reports)
	for _, part := range []func(io.Writer, *bench){printJoins, printMargins, printFolds, printRanking} {
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		part(table, b)
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return nil
}
