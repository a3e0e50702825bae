package objects_test

import (
	"context"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/weirlog/weir/ingest/internal/objects"
	"github.com/weirlog/weir/shared/testenv"
)

// stores are one of each kind.
func stores(t *testing.T) map[string]objects.Store {
	t.Helper()
	backend := s3mem.New()
	testenv.Must(t, backend.CreateBucket("logs"))
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	all := map[string]objects.Store{}
	for name, address := range map[string]string{
		"folder": "file://" + filepath.Join(t.TempDir(), "archive"),
		"bucket": "s3://logs/weir?region=eu-1&endpoint=" + url.QueryEscape(server.URL),
	} {
		store, err := objects.Open(address)
		testenv.Must(t, err)
		all[name] = store
	}
	return all
}

func TestAStoreKeepsObjects(t *testing.T) {
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			testenv.Must(t, store.Put(ctx, "one", []byte("0123456789")))
			got, err := store.GetRange(ctx, "one", 3, 4)
			if err != nil || string(got) != "3456" {
				t.Errorf("got %q, %v", got, err)
			}
			for what, of := range map[string]struct {
				object       string
				from, length int64
			}{"more than there is": {"one", 8, 4}, "what is not there": {"two", 0, 1}} {
				if got, err := store.GetRange(ctx, of.object, of.from, of.length); err == nil {
					t.Errorf("%s is %q", what, got)
				}
			}
			for range 2 { // also what is gone already
				testenv.Must(t, store.Delete(ctx, "one"))
			}
			if got, err := store.GetRange(ctx, "one", 0, 1); err == nil {
				t.Errorf("a deleted object is %q", got)
			}
		})
	}
}

// A write that fails leaves nothing that looks like an object.
func TestAFolderThatCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "archive")
	store, err := objects.Open("file://" + dir)
	testenv.Must(t, err)
	testenv.Must(t, os.RemoveAll(dir))
	if err := store.Put(t.Context(), "one", []byte("body")); err == nil {
		t.Error("an object was written into a folder that is gone")
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, address := range []string{"", "/var/lib", "file://host/path", "https://bucket", "s3://", "s3://b?endpoint=host:9000", "s3://b?secret=x", "s3://b?endpoint=ftp://h"} {
		if _, err := objects.Open(address); err == nil || !strings.Contains(err.Error(), "archive") && !strings.Contains(err.Error(), "s3://") {
			t.Errorf("%q: %v", address, err)
		}
	}
}
