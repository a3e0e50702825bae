package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// A folder keeps objects as files. What Put returned without an error is
// on the disk.
type folder struct{ root *os.Root }

func openFolder(path string) (Store, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the folder of the archive: %w", err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the folder of the archive: %w", err)
	}
	return &folder{root}, nil
}

// Put writes another file first, so that a file with the name is whole.
func (f *folder) Put(_ context.Context, name string, body []byte) error {
	partial := name + ".partial"
	err := f.write(partial, body)
	if err == nil {
		err = f.root.Rename(partial, name)
	}
	if err == nil {
		err = f.sync()
	}
	if err != nil {
		return fmt.Errorf("cannot write object %s: %w", name, errors.Join(err, ignoreMissing(f.root.Remove(partial))))
	}
	return nil
}

func (f *folder) write(name string, body []byte) error {
	file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(body)
	return errors.Join(err, file.Sync(), file.Close())
}

// sync makes the names of files durable.
func (f *folder) sync() error {
	dir, err := f.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (f *folder) GetRange(_ context.Context, name string, from, length int64) ([]byte, error) {
	file, err := f.root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read object %s: %w", name, err)
	}
	defer file.Close()
	body := make([]byte, length)
	if _, err := io.ReadFull(io.NewSectionReader(file, from, length), body); err != nil {
		return nil, fmt.Errorf("cannot read %d bytes of object %s from %d on: %w", length, name, from, err)
	}
	return body, nil
}

// Delete removes what an interrupted Put has left as well.
func (f *folder) Delete(_ context.Context, name string) error {
	err := errors.Join(ignoreMissing(f.root.Remove(name)), ignoreMissing(f.root.Remove(name+".partial")))
	if err != nil {
		return fmt.Errorf("cannot delete object %s: %w", name, err)
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
