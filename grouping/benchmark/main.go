package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

const help = `benchmark measures how well errors are grouped.

It runs programs that fail, in each language that is installed, and varies what must not
make another group: folder, lines, values, callers, builds, versions. That takes a minute or
two. Then it groups the labelled errors of a file, if one is named, beside the rules of other
products.

A file is cut into two halves, by project and by time. Tune on -half=tuning, some of the
projects; what is reported is the other half. Capture is the share of duplicates that join
what they duplicate, false joins are the share of new errors that join something else.

`

// options are what is measured.
type options struct {
	data   string // file with labelled errors; "": none
	tuning bool   // print the tuning half
	moved  bool   // print what the matrices count against Weir
	only   string // run the programs of these platforms; "": of all
}

func main() {
	var o options
	flag.StringVar(&o.data, "data", os.Getenv("DATA"), "file with labelled errors, JSON lines")
	half := flag.String("half", "reporting", "half of the file that is printed: tuning or reporting")
	flag.BoolVar(&o.moved, "moved", false, "print the variants that make another group, and the faults that share one")
	flag.StringVar(&o.only, "only", "", "run the programs of these platforms alone, such as Go,C++, or none")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), help)
		flag.PrintDefaults()
		fmt.Fprint(flag.CommandLine.Output(), "\n", format, "\n")
	}
	flag.Parse()
	if o.tuning = *half == "tuning"; !o.tuning && *half != "reporting" {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(os.Stdout, o, platforms); err != nil {
		fmt.Fprintln(os.Stderr, "benchmark:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, o options, platforms []platform) error {
	all, err := matrices(chosen(platforms, o.only))
	if err != nil {
		return err
	}
	aligned(out, func(table io.Writer) { printMatrices(table, all) })
	if o.moved {
		printMoved(out, all)
	}
	var reports []report
	var halves []half
	if o.data == "" {
		fmt.Fprint(out, "No labelled errors were named: DATA=errors.jsonl.gz compares with other products; -help describes the file.\n\n")
	} else {
		if reports, err = load(o.data); err != nil {
			return err
		}
		b, split := newBench(reports), byProject(reports)
		halves = append(halves, split.tuning)
		aligned(out, func(table io.Writer) { printHalf(table, b, split, o.tuning) })
		if !o.tuning { // half of what was seen earlier is of the projects that report
			halves = append(halves, split.reporting)
			aligned(out, func(table io.Writer) { printHalf(table, b, byTime(reports), false) })
		}
	}
	aligned(out, func(table io.Writer) { printVariants(table, reports, halves, all) })
	return nil
}

// aligned aligns the columns of a table.
func aligned(out io.Writer, print func(table io.Writer)) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	defer table.Flush() //nolint:errcheck // to a terminal
	print(table)
	fmt.Fprintln(table)
}
