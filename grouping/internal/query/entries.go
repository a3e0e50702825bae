package query

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/shared/httpapi"
)

// Bounds of the log entries of a request. One has up to 512 KB.
const (
	maxEntries     = 200
	maxEntriesBody = 4 << 20 // bytes
)

// EntriesBody is log entries of which those of a group are wanted.
type EntriesBody struct {
	Items []EntryBody `json:"items" maxItems:"200" description:"Items of GET /v1/logs, 4 MiB in all"`
}

// EntryBody is an item of GET /v1/logs.
type EntryBody struct {
	ID           string          `json:"id"`
	Organization string          `json:"organization,omitempty" description:"It has no meaning here"`
	Project      string          `json:"project"`
	Environment  string          `json:"environment"`
	ReceivedAt   time.Time       `json:"received_at"`
	Entry        json.RawMessage `json:"entry" type:"object"`
}

// ReadEntries reads a body that has or is an EntriesBody.
func ReadEntries(w http.ResponseWriter, r *http.Request, body any, of *EntriesBody) ([]groups.Entry, error) {
	if err := httpapi.ReadJSONUpTo(w, r, maxEntriesBody, body); err != nil {
		return nil, err
	}
	if n := len(of.Items); n > maxEntries {
		return nil, httpapi.Invalid("/items", httpapi.CodeInvalidRequest, fmt.Sprintf("There are %d entries.", n), fmt.Sprintf("Send at most %d.", maxEntries))
	}
	entries := make([]groups.Entry, len(of.Items))
	for i, item := range of.Items {
		if len(item.Entry) == 0 || item.Entry[0] != '{' {
			return nil, httpapi.Invalid(fmt.Sprintf("/items/%d/entry", i), httpapi.CodeInvalidRequest, "The entry is no object.",
				"Send items of GET /v1/logs as they are.")
		}
		entries[i] = groups.Entry{ID: item.ID, Project: item.Project, Environment: item.Environment, ReceivedAt: item.ReceivedAt, Text: item.Entry}
	}
	return entries, nil
}

// SelectedBody is which of some log entries are of a group.
type SelectedBody struct {
	Entries []string `json:"entries" maxItems:"200" description:"The ids of those, in the order in which they were sent"`
}

// Selected shows errors of a group.
func Selected(errs []grouping.Occurrence) SelectedBody {
	body := SelectedBody{Entries: make([]string, len(errs))}
	for i, o := range errs {
		body.Entries[i] = o.Entry
	}
	return body
}
