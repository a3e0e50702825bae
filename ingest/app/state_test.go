package app_test

import (
	"path/filepath"
	"testing"

	"github.com/weirlog/weir/ingest/app"
	"github.com/weirlog/weir/shared/contract"
)

// A replica starts with the credentials and accounts in WEIR_STATE_DIR:
// it admits the same keys and gets revocations since.
func TestStateIsKept(t *testing.T) {
	r := newRig(t)
	r.account("org_a", nil)
	good, doomed := r.key("org_a", "prj_a", nil), r.key("org_a", "prj_a", func(c *contract.Credential) { c.ID = "doomed" })
	dir := t.TempDir()
	keeping := func(c *app.Config) { c.StateDir = dir }
	p := r.start(keeping)
	for _, key := range []string{good, doomed} {
		if a := p.post(key, bodyOf(entry("m"))); a.status != 200 {
			t.Fatalf("answered %d %s", a.status, a.code())
		}
	}
	p.stop()
	kept, err := filepath.Glob(filepath.Join(dir, "ingest", "*.state"))
	if err != nil || len(kept) != 3 {
		t.Fatalf("kept %v (%v), want credentials, accounts and projects", kept, err)
	}
	r.Publish(contract.TopicCredentials, contract.CredentialKey(doomed), nil, nil)
	p = r.start(keeping)
	if a := p.post(good, bodyOf(entry("m"))); a.status != 200 {
		t.Errorf("a key that was kept is answered %d %s", a.status, a.code())
	}
	if a := p.post(doomed, bodyOf(entry("m"))); a.status != 401 {
		t.Errorf("a key that was removed meanwhile is answered %d", a.status)
	}
}
