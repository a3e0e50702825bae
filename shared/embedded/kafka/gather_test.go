package kafka

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/disk"
)

// countedFiles counts the reads of files.
type countedFiles struct {
	disk.FS
	reads atomic.Int64
}

type countedFile struct {
	disk.File
	reads *atomic.Int64
}

func (f countedFile) ReadAt(p []byte, at int64) (int, error) {
	f.reads.Add(1)
	return f.File.ReadAt(p, at)
}

func (f *countedFiles) Open(name string) (disk.File, error) {
	file, err := f.FS.Open(name)
	return countedFile{file, &f.reads}, err
}

func (f *countedFiles) Create(name string) (disk.File, error) {
	file, err := f.FS.Create(name)
	return countedFile{file, &f.reads}, err
}

// A consumer that lets records gather gets all at once, and the log is read
// for the answer, not at each record that comes meanwhile.
func TestWhatGathersIsReadOnce(t *testing.T) {
	const records, size = 40, 10 << 10
	files := &countedFiles{FS: disk.NewMemory(time.Now)}
	b := start(t, Config{files: files})
	create(t, b.Addr(), "test.gather")
	var all []*kgo.Record
	for range records {
		all = append(all, kgo.StringRecord(strings.Repeat("x", size)))
	}
	c := client(t, b.Addr(), kgo.ConsumeTopics("test.gather"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMinBytes(records*size), kgo.FetchMaxWait(30*time.Second))
	answer := make(chan int)
	go func() { answer <- len(c.PollFetches(t.Context()).Records()) }()
	before := files.reads.Load()
	produce(t, b.Addr(), "test.gather", all...)
	if n := <-answer; n != records {
		t.Errorf("%d records came at once", n)
	}
	if reads := files.reads.Load() - before; reads == 0 || reads > records/4 {
		t.Errorf("files were read %d times for %d records", reads, records)
	}
}
