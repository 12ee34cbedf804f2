# The formula for Homebrew on Linux. Ruby checks its syntax; installing by brew was not tried.
class Cnsbench < Formula
  desc "Benchmark for cloud native storage"
  homepage "https://github.com/cnsbench/cnsbench"
  version "@VERSION@".delete_prefix("v")
  license "Apache-2.0"
  depends_on :linux

  on_intel do
    url "https://github.com/cnsbench/cnsbench/releases/download/@TAG@/cnsbench-@TAG@-linux-amd64.tar.gz"
    sha256 "@AMD64@"
  end
  on_arm do
    url "https://github.com/cnsbench/cnsbench/releases/download/@TAG@/cnsbench-@TAG@-linux-arm64.tar.gz"
    sha256 "@ARM64@"
  end

  def install
    bin.install "cnsbench", "cnsbench-agent"
    bin.install_symlink "cnsbench" => "kubectl-cnsbench"
    man1.install Dir["man1/*"]
    bash_completion.install "completion/bash" => "cnsbench"
    zsh_completion.install "completion/zsh" => "_cnsbench"
    fish_completion.install "completion/fish" => "cnsbench.fish"
    pkgshare.install "examples"
  end

  test do
    system bin/"cnsbench", "validate", pkgshare/"examples/null-poisson.yaml"
  end
end
