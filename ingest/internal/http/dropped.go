package http

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"

	"github.com/weirlog/weir/ingest"
)

// maxNotice is how long an entry may be that says what a client dropped.
const maxNotice = 4 << 10

var noticeMember = []byte(`"dropped_by_client":{`)

// dropReasons are those that our clients give; another counts as "other".
var dropReasons = []string{
	"queue_full", "too_large", "entry_too_large", "not_json", "rejected", "quota_exceeded", "expired", "unauthorized", "failed", "closed", "spool_failed",
}

// droppedByClient returns how many entries the client says that it has
// dropped, by reason. Our clients say it in the last entry of a batch.
func droppedByClient(batch *ingest.Batch) map[string]int64 {
	last := bytes.TrimSuffix(batch.Lines, []byte("\n"))
	last = last[bytes.LastIndexByte(last, '\n')+1:]
	if len(last) > maxNotice || !bytes.Contains(last, noticeMember) {
		return nil
	}
	var notice struct {
		Metadata struct {
			Dropped map[string]uint32 `json:"dropped_by_client"`
		} `json:"metadata"`
	}
	if json.Unmarshal(last, &notice) != nil { // it is somebody else's
		return nil
	}
	dropped := map[string]int64{}
	for reason, entries := range notice.Metadata.Dropped {
		if !slices.Contains(dropReasons, reason) {
			reason = "other"
		}
		dropped[reason] += min(int64(entries), math.MaxInt32)
	}
	return dropped
}
