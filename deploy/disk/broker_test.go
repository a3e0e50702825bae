//go:build disk

package disk

import (
	"path/filepath"
	"testing"
)

// A broker that refuses what it can't write is named by /readyz, until it
// can write, whether or not anything is posted then.
func TestBrokerRefuses(t *testing.T) {
	in := start(t, folder(t), nil)
	writable := immutable(t, filepath.Join(in.dir, "kafka"))
	end := in.load(1, 10, 100)
	in.awaitReadyz("broker")
	end()
	writable()
	in.awaitReadyz("")
	in.awaitPost(in.env.APIKey)
	in.verify()
	in.stop()
}
