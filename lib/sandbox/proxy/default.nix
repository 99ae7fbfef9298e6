# The image of the proxy beside a closed sandbox. Its arguments say what it lets pass, so that all
# sandboxes share it.
{ pkgs }:

let
  inherit (pkgs) lib;
  certificates = "${pkgs.cacert}/etc/ssl/certs/ca-bundle.crt";

  programs = pkgs.buildEnv {
    name = "proxy-programs";
    paths = lib.imap1 lib.setPrio [
      pkgs.bashInteractive
      pkgs.coreutils
      pkgs.nginx
      pkgs.socat
      pkgs.squid
    ];
    ignoreCollisions = true;
    pathsToLink = [ "/bin" ];
  };
in
pkgs.dockerTools.streamLayeredImage {
  name = "tmux-debug-sandbox-proxy";
  maxLayers = 2;
  contents = [ programs ];
  extraCommands = ''
    mkdir -p etc/ssl/certs run
    mkdir -m 1777 tmp
    ln -s ${certificates} etc/ssl/certs/ca-certificates.crt
    install -m 644 ${../etc/passwd} etc/passwd
    install -m 644 ${../etc/group} etc/group
    install -m 755 ${./proxy.sh} proxy.sh
    install -m 644 ${./squid.conf} squid.conf
    mkdir errors
    cat >errors/ERR_ACCESS_DENIED <<'END'
    This sandbox lets nothing pass to %U. Whoever started it can add the host to its allowedHosts.
    END
    echo '%U cannot be reached: %E' | tee errors/ERR_CONNECT_FAIL >errors/ERR_DNS_FAIL
  '';
  config = {
    User = "1000:1000";
    WorkingDir = "/tmp";
    Entrypoint = [
      (lib.getExe pkgs.tini)
      "-s"
      "--"
      "/proxy.sh"
    ];
    Env = [
      "HOME=/tmp"
      "LANG=C.UTF-8"
      "PATH=/bin"
    ];
  };
}
