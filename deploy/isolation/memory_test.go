package isolation

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/contract"
)

// isForgotten looks for the mark in the memory of this process: in
// everything reachable from the variables of packages and the caches of
// the modules, which have run here since the tenant's first day. The
// broker runs here too, so its topics, which have their own retention,
// are deleted first.
func (w *world) isForgotten(t *testing.T) {
	t.Helper()
	w.deleteTopics(t)
	w.pool.Reset() // connections keep what they read last
	control := []byte(rand.Text())
	memory := heap(t)
	if !bytes.Contains(memory, control) {
		t.Error("the search does not find what is in memory")
	}
	for _, form := range []string{mark, strings.ToLower(mark), hex.EncodeToString([]byte(mark)), hex.EncodeToString([]byte(strings.ToLower(mark)))} {
		if at := bytes.Index(memory, []byte(form)); at >= 0 {
			around := printable(memory[max(0, at-200):min(len(memory), at+200)])
			t.Errorf("memory shows %s %d times, first in …%s…", form, bytes.Count(memory, []byte(form)), around)
		}
	}
	runtime.KeepAlive(control)
	runtime.KeepAlive(w.modules)
}

// printable removes the bytes that are no text.
func printable(memory []byte) string {
	return strings.Join(strings.FieldsFunc(string(memory), func(r rune) bool { return r < ' ' || r > '~' }), " ")
}

// heap returns the memory in use, without what could be collected.
func heap(t *testing.T) []byte {
	t.Helper()
	for range 2 { // a sync.Pool lasts for one collection
		runtime.GC()
	}
	path := filepath.Join(t.TempDir(), "heap")
	file, err := os.Create(path)
	must(t, err)
	debug.WriteHeapDump(file.Fd())
	must(t, file.Close())
	memory, err := os.ReadFile(path)
	must(t, err)
	return memory
}

// deleteTopics deletes all topics of the broker.
func (w *world) deleteTopics(t *testing.T) {
	t.Helper()
	client := &kafkago.Client{Addr: kafkago.TCP(w.brokers...), Timeout: waitTimeout}
	var names []string
	for _, topic := range contract.Topics(1, 0) {
		names = append(names, topic.Name)
	}
	answer, err := client.DeleteTopics(t.Context(), &kafkago.DeleteTopicsRequest{Topics: names})
	must(t, err)
	for _, err := range answer.Errors {
		must(t, err)
	}
}
