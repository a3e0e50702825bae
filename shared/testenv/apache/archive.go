package apache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weirlog/weir/shared/testenv/filelock"
)

// archive makes the archive of a node's classes, which Java maps into
// memory instead of loading them: a start takes a third less time and
// CPU. It lies beside the jars; the first user makes it, others wait.
// "": this Java makes none.
func archive(ctx context.Context, java []byte, jars string) (string, error) {
	id := sha256.Sum256(java) // another Java takes none of this one's
	place := jars + "-" + hex.EncodeToString(id[:6]) + ".jsa"
	if exists(place) {
		return place, nil
	}
	held, err := filelock.Take(place + ".lock")
	if err != nil {
		return "", err
	}
	defer held.Close()
	if exists(place) {
		return place, nil
	}
	err = makeArchive(ctx, jars, place)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return place, err
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// makeArchive runs a node until it answers: Java writes the archive at
// its end. fs.ErrNotExist: this Java wrote none.
func makeArchive(ctx context.Context, jars, place string) error {
	dir, err := os.MkdirTemp(filepath.Dir(place), "archiving-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	plan, err := planCluster(Config{Dir: filepath.Join(dir, "node"), Brief: true}, 1)
	if err != nil {
		return err
	}
	b, made := &Broker{node: plan[0], jars: jars, cluster: clusterID()}, filepath.Join(dir, "made.jsa")
	if err := b.format(ctx); err != nil {
		return err
	}
	b.classes = "-XX:ArchiveClassesAtExit=" + made
	if err := b.launch(); err != nil {
		return err
	}
	if err := errors.Join(b.await(ctx, 1), b.Stop()); err != nil {
		return fmt.Errorf("cannot archive the classes of Apache Kafka: %w", err)
	}
	return os.Rename(made, place)
}
