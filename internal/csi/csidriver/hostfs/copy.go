package hostfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// CopyTree copies a directory with its files, links, modes, owners and modification times, and syncs the file system at
// the end. It follows no link. Holes, hard links and extended attributes are not kept; pipes, sockets and devices are
// refused. What vanishes while it is being copied is left out.
func CopyTree(from, to string) error {
	var dirs []func() error // their modes and times are set last: making entries needs one and changes the other
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = copyEntry(path, filepath.Join(to, path[len(from):]), entry, &dirs)
		}
		if path != from && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	for _, finish := range slices.Backward(dirs) {
		err = errors.Join(err, finish())
	}
	if err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	return SyncFS(to)
}

func copyEntry(from, to string, entry fs.DirEntry, dirs *[]func() error) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	switch kind := info.Mode().Type(); kind {
	case fs.ModeDir:
		*dirs = append(*dirs, func() error { return copyMeta(info, to) })
		return os.Mkdir(to, 0o700)
	case fs.ModeSymlink:
		link, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return errors.Join(os.Symlink(link, to), copyOwner(info, to))
	case 0:
		if err := copyFile(from, to); err != nil {
			return err
		}
		return copyMeta(info, to)
	default:
		return fmt.Errorf("%s is of the kind %s, which cannot be copied", from, kind)
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() // only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func copyMeta(info fs.FileInfo, to string) error {
	return errors.Join(copyOwner(info, to), os.Chmod(to, info.Mode()), os.Chtimes(to, info.ModTime(), info.ModTime()))
}

// copyOwner needs root; an ordinary user owns what it copies.
func copyOwner(info fs.FileInfo, to string) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(to, int(st.Uid), int(st.Gid))
}

// RemoveTree removes path and all below it, also directories that an ordinary user has made read-only. That path is gone
// is no error.
func RemoveTree(path string) error {
	err := os.RemoveAll(path)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(path, func(p string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(p, 0o700) // it is about to be removed; what fails shows below
		}
		return nil
	})
	return os.RemoveAll(path)
}

// SyncFS commits the file system that holds path.
func SyncFS(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(os.NewSyscallError("syncfs", unix.Syncfs(int(f.Fd()))), f.Close())
}
