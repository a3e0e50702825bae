package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/weirlog/weir/deploy/terminal"
	"github.com/weirlog/weir/shared/testenv"
)

var sized = regexp.MustCompile("(?s)```\n\\$ weir size (.*?)\n(.*?)```")

// size.md shows what weir size prints.
func TestSizePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/size.md")
	testenv.Must(t, err)
	shown := sized.FindAllStringSubmatch(string(page), -1)
	if len(shown) < 3 {
		t.Fatalf("%d sizes are shown", len(shown))
	}
	for _, of := range shown {
		if got := sizeOf(t, strings.Fields(of[1])...); got != of[2] {
			t.Errorf("weir size %s prints\n%s\nand the page shows\n%s", of[1], got, of[2])
		}
	}
}

func sizeOf(t *testing.T, args ...string) string {
	t.Helper()
	var command sizeCommand
	parser, err := kong.New(&command)
	testenv.Must(t, err)
	_, err = parser.Parse(args)
	testenv.Must(t, err)
	var out strings.Builder
	testenv.Must(t, command.write(terminal.Screen{Writer: &out}))
	return out.String()
}

func TestSizeRefuses(t *testing.T) {
	for flag, command := range map[string]sizeCommand{
		"--retention":        {EntriesPerSecond: 1, Bytes: 1, Peak: 1, Batch: 1, TransfersMonths: 1, Retention: "a month", LogRetention: "7d"},
		"--log-retention":    {EntriesPerSecond: 1, Bytes: 1, Peak: 1, Batch: 1, TransfersMonths: 1, Retention: "30d", LogRetention: "-1d"},
		"core price":         {EntriesPerSecond: 1, Bytes: 1, Peak: 1, Batch: 1, TransfersMonths: 1, Retention: "30d", LogRetention: "7d", CorePrice: -1},
		"at least 1 entry":   {EntriesPerSecond: 1, Bytes: 1, Peak: 1, Batch: 0.5, TransfersMonths: 1, Retention: "30d", LogRetention: "7d"},
		"entries per second": {Bytes: 1, Peak: 1, Batch: 1, TransfersMonths: 1, Retention: "30d", LogRetention: "7d"},
	} {
		if err := command.write(terminal.Screen{Writer: new(strings.Builder)}); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
