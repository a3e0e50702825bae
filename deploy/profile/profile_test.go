package profile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
)

// Profiles are kept for their owner alone, and none shows its secrets.
func TestProfiles(t *testing.T) {
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	if all, err := Read(); err != nil || len(all.ByName) != 0 {
		t.Fatalf("got %v, %v", all, err)
	}
	prod := Profile{BaseURL: "https://weir.example.com/v1", CAFile: "/ca.pem", Organization: "org_1", Project: "prj_1", APIKey: "hidden1", ServiceToken: "hidden2"}
	testenv.Must(t, Change(func(all *Profiles) error {
		all.Used, all.ByName["prod"] = "prod", prod
		return nil
	}))
	failed := errors.New("no")
	if err := Change(func(all *Profiles) error { all.Used = ""; return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	all, err := Read()
	testenv.Must(t, err)
	shown, err := json.Marshal(all)
	testenv.Must(t, err)
	if got, err := all.Find("prod"); err != nil || got != prod || all.Used != "prod" || strings.Contains(fmt.Sprintf("%+v %s", all, shown), "hidden") {
		t.Errorf("got %+v, %s, %v", all, shown, err)
	}
	if _, err := all.Find("dev"); err == nil || !strings.Contains(err.Error(), "weir profile add dev") {
		t.Errorf("got %v", err)
	}
	testenv.Must(t, filepath.WalkDir(filepath.Join(config, "weir"), func(path string, entry os.DirEntry, err error) error {
		if info, _ := entry.Info(); err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %o", path, info.Mode())
		}
		return err
	}))
	testenv.Must(t, os.Truncate(filepath.Join(config, "weir", "profiles.json"), 3))
	if err := Change(func(*Profiles) error { return nil }); err == nil || !strings.Contains(err.Error(), "repair") {
		t.Errorf("got %v", err)
	}
}

// Without a home there are none, and none can be kept.
func TestHomeless(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv("XDG_CONFIG_HOME", "")
	if all, err := Read(); err != nil || len(all.ByName) != 0 {
		t.Errorf("got %v, %v", all, err)
	}
	if err := Change(func(*Profiles) error { return nil }); err == nil || !strings.Contains(err.Error(), "set HOME") {
		t.Errorf("got %v", err)
	}
}
