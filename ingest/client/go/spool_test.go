package weir_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	weir "github.com/weirlog/weir/ingest/client/go"
	"github.com/weirlog/weir/ingest/client/go/conformance"
)

const (
	key      = "weir_0123456789abcdef0123456789abcdef0123456789abcdef"
	spoolEnv = "WEIR_TEST_SPOOL" // makes this program one that logs and is killed
	spooled  = 1000
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(spoolEnv); dir != "" {
		logUntilKilled(dir)
	}
	os.Exit(m.Run())
}

func logUntilKilled(dir string) {
	c, err := weir.New(weir.Options{Spool: weir.Spool{Dir: dir}, Limits: weir.Limits{BatchEntries: 100, BatchDelay: time.Millisecond}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for i := range spooled {
		c.Log(weir.Entry{Message: strconv.Itoa(i)})
	}
	select {}
}

// files lists a spool's batches, and how many entries they have.
func files(t *testing.T, dir string) (names []string, entries int) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.batch"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		n, err := strconv.Atoi(strings.Split(filepath.Base(name), "_")[1])
		if err != nil {
			t.Fatal(err)
		}
		entries += n
	}
	return names, entries
}

func within(t *testing.T, limit time.Duration, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// killed lets a program log to a server that stores its first batch and does
// not answer, and kills it. It returns what the next one is to do.
func killed(t *testing.T) (server *conformance.Server, o weir.Options) {
	t.Helper()
	server = conformance.NewServer()
	t.Cleanup(server.Close)
	release := make(chan struct{})
	server.Fault = func(n int, keep func(), _ http.ResponseWriter) bool {
		if n > 1 {
			return false
		}
		keep()
		<-release
		return true
	}
	folder := t.TempDir()
	ca, err := server.CAFile(folder)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(folder, "spool")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), spoolEnv+"="+dir, "WEIR_BASE_URL="+server.URL+"/v1", "WEIR_API_KEY="+key, "WEIR_CA_FILE="+ca)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	within(t, time.Minute, "all is on disk, and the first batch on its way", func() bool {
		_, entries := files(t, dir)
		return entries == spooled && server.Requests() > 0
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	close(release)
	return server, weir.Options{BaseURL: server.URL + "/v1", APIKey: key, CAFile: ca, Spool: weir.Spool{Dir: dir}, OnError: func(error) {}}
}

func TestTheSpoolSurvivesAKill(t *testing.T) {
	server, o := killed(t)
	torn := filepath.Join(o.Spool.Dir, "1_5_x.batch.unfinished")
	if err := os.WriteFile(torn, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := opened(t, o)
	if _, err := weir.New(o); err == nil || !strings.Contains(err.Error(), "a folder of its own") {
		t.Errorf("a second client of the folder: %v", err)
	}
	c.Log(weir.Entry{Message: "after"})
	if err := c.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	closed(t, c)
	if stats := c.Stats(); stats.Accepted != spooled+1 || len(stats.Dropped)+stats.Waiting != 0 {
		t.Errorf("stats: %+v", stats)
	}
	for i := range spooled {
		if n := server.Entries[strconv.Itoa(i)]; n != 1 {
			t.Errorf("entry %d is there %d times", i, n)
		}
	}
	if names, _ := files(t, o.Spool.Dir); len(names) > 0 || server.Entries["after"] != 1 || server.Reused > 0 {
		t.Errorf("left: %v, stored: %d, keys reused: %d", names, server.Entries["after"], server.Reused)
	}
	if _, err := os.Stat(torn); err == nil {
		t.Error("what was not finished is still there")
	}
	opened(t, o) // the lock is free
}

func TestADamagedBatchIsTold(t *testing.T) {
	server, o := killed(t)
	names, _ := files(t, o.Spool.Dir)
	text, err := os.ReadFile(names[1])
	if err == nil {
		err = os.WriteFile(names[1], text[:len(text)/2], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	var said error
	o.OnError = func(err error) { said = err }
	c := opened(t, o)
	if err := c.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	closed(t, c)
	if stats := c.Stats(); stats.Accepted+stats.Dropped[weir.SpoolFailed] != spooled || stats.Dropped[weir.SpoolFailed] == 0 || said == nil {
		t.Errorf("stats: %+v, told %v", stats, said)
	}
	if server.Notices != int(c.Stats().Dropped[weir.SpoolFailed]) {
		t.Errorf("told Weir of %d", server.Notices)
	}
}

// Weir has forgotten the key of a batch that is older than a day.
func TestAnOldBatchIsNotSent(t *testing.T) {
	server, o := killed(t)
	names, _ := files(t, o.Spool.Dir)
	_, rest, _ := strings.Cut(filepath.Base(names[0]), "_")
	old := fmt.Sprintf("%020d_%s", time.Now().Add(-24*time.Hour).UnixNano(), rest)
	if err := os.Rename(names[0], filepath.Join(o.Spool.Dir, old)); err != nil {
		t.Fatal(err)
	}
	c := opened(t, o)
	if err := c.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	closed(t, c)
	if stats := c.Stats(); stats.Dropped[weir.Expired] == 0 || stats.Accepted+stats.Dropped[weir.Expired] != spooled || server.Requests() != len(names)+1 {
		t.Errorf("%d requests for %d batches, stats %+v", server.Requests(), len(names), stats)
	}
}

func TestARefusedKeyLeavesTheSpool(t *testing.T) {
	server, o := killed(t)
	server.Refuse(http.StatusUnauthorized, "api_key_revoked")
	c := opened(t, o)
	if err := c.Flush(t.Context()); err == nil {
		t.Error("all was sent")
	}
	_ = c.Close(t.Context())
	if _, left := files(t, o.Spool.Dir); left != spooled || c.Stats().Waiting != spooled {
		t.Errorf("%d entries are left, stats %+v", left, c.Stats())
	}
}

func TestCloseLeavesTheRestInTheSpool(t *testing.T) {
	server := conformance.NewServer()
	defer server.Close()
	server.Refuse(http.StatusInternalServerError, "unavailable")
	folder := t.TempDir()
	ca, err := server.CAFile(folder)
	if err != nil {
		t.Fatal(err)
	}
	o := weir.Options{BaseURL: server.URL + "/v1", APIKey: key, CAFile: ca, OnError: func(error) {},
		Spool: weir.Spool{Dir: filepath.Join(folder, "spool"), Bytes: 4096}, Limits: weir.Limits{BatchEntries: 100, QueueEntries: 1000}}
	c := opened(t, o)
	const all = 20_000
	for i := range all {
		c.Log(weir.Entry{Message: strconv.Itoa(i)})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := c.Close(ctx); err == nil {
		t.Error("all was sent")
	}
	stats := c.Stats()
	_, left := files(t, o.Spool.Dir)
	if dropped := int(stats.Dropped[weir.QueueFull] + stats.Dropped[weir.Closed]); left == 0 || left != stats.Waiting || dropped+left != all {
		t.Errorf("%d entries are left, stats %+v", left, stats)
	}
	if size := sizeOf(t, o.Spool.Dir); size > 4096+4096 { // the bound, and a batch
		t.Errorf("%d bytes on disk", size)
	}
	server.Refuse(0, "")
	c = opened(t, o)
	if err := c.Flush(t.Context()); err != nil || len(server.Entries) < left {
		t.Errorf("%d of %d stored: %v", len(server.Entries), left, err)
	}
	closed(t, c)
}

func TestMemoryIsBoundedWithoutADisk(t *testing.T) {
	server := conformance.NewServer()
	defer server.Close()
	server.Refuse(http.StatusInternalServerError, "unavailable")
	folder := t.TempDir()
	ca, err := server.CAFile(folder)
	if err != nil {
		t.Fatal(err)
	}
	c := opened(t, weir.Options{BaseURL: server.URL + "/v1", APIKey: key, CAFile: ca, OnError: func(error) {},
		Spool: weir.Spool{Dir: filepath.Join(folder, "spool")}, Limits: weir.Limits{BatchEntries: 10, QueueEntries: 100}})
	if err := os.RemoveAll(filepath.Join(folder, "spool")); err != nil {
		t.Fatal(err)
	}
	for range 10_000 {
		c.Log(weir.Entry{Message: "x"})
	}
	if stats := c.Stats(); stats.Waiting > 110 || stats.Waiting+int(stats.Dropped[weir.QueueFull]) < 9990 { // ten may be in hand
		t.Errorf("stats: %+v", stats)
	}
	server.Refuse(0, "")
	closed(t, c)
	if stats := c.Stats(); stats.Accepted+stats.Dropped[weir.QueueFull] != 10_000 {
		t.Errorf("stats: %+v", stats)
	}
}

func sizeOf(t *testing.T, dir string) (size int64) {
	t.Helper()
	names, _ := files(t, dir)
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	return size
}

func opened(t *testing.T, o weir.Options) *weir.Client {
	t.Helper()
	c, err := weir.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, c) })
	return c
}

func closed(t *testing.T, c *weir.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_ = c.Close(ctx)
}
