package filelock

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
)

// Path of the file that tests lock for a server, by its address.
func Path(server string) string {
	id := sha256.Sum256([]byte(server))
	return filepath.Join(os.TempDir(), "weir-test-turn-"+hex.EncodeToString(id[:6]))
}
