package command

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/weirlog/weir/grouping"
)

// longestEntry is more than any accepted entry has.
const longestEntry = 1 << 20

// eachError reads entries, one a line, and calls with
// for their errors. A line may also be an error alone.
func eachError(in io.Reader, with func(line int, e grouping.Error) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, longestEntry)
	for n := 1; lines.Scan(); n++ {
		var entry struct {
			payload
			Error *payload `json:"error"`
		}
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		sent := entry.Error
		if sent == nil {
			if sent = &entry.payload; sent.Type == "" && sent.StackTrace == nil {
				continue
			}
		}
		if err := with(n, grouping.Error{Type: sent.Type, Message: sent.Message, StackTrace: sent.StackTrace}); err != nil {
			return err
		}
	}
	return lines.Err()
}

type payload struct {
	Type       string   `json:"type"`
	Message    string   `json:"message"`
	StackTrace []string `json:"stack_trace"`
}
