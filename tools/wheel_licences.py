# SPDX-License-Identifier: MIT
"""Add the licence texts of the libraries that auditwheel put into a wheel.

    wheel_licences.py WHEEL

The texts come from the system whose libraries they are (Debian's
/usr/share/doc/PACKAGE/copyright, Fedora's and Alma's /usr/share/licenses), go
to *.dist-info/licenses (PEP 639), and METADATA names them. The wheel is
replaced. Also checks that the bill of materials (PEP 770) names each library.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# A bundled file's stem: (SPDX expression, where systems keep its text)
KNOWN = {
    "libdeflate": ("MIT", ["libdeflate0/copyright", "libdeflate/COPYING", "libdeflate-dev/COPYING"]),
    "libisal": ("BSD-3-Clause", ["libisal2/copyright", "isa-l/LICENSE", "libisal/LICENSE"]),
    "libz": ("Zlib", ["zlib1g/copyright", "zlib/LICENSE", "zlib-ng-compat/LICENSE.md"]),
}
PLACES = [Path("/usr/share/doc"), Path("/usr/share/licenses")]


def licence_text(stem: str) -> Path:
    for place in PLACES:
        for name in KNOWN[stem][1]:
            if (place / name).is_file():
                return place / name
    raise SystemExit(f"no licence text of {stem} below {' or '.join(map(str, PLACES))}")


def main(wheel: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = [sys.executable, "-m", "wheel"]
        subprocess.run([*run, "unpack", "-d", folder, str(wheel)], check=True, stdout=subprocess.DEVNULL)
        (top,) = Path(folder).iterdir()
        (info,) = top.glob("*.dist-info")
        bundled = sorted(path.name for path in top.glob("*.libs/*.so*"))
        metadata = (info / "METADATA").read_text()
        boms = [json.loads(path.read_text()) for path in info.glob("sboms/*.cdx.json")]
        components = json.dumps(boms)
        expressions = set()
        for name in bundled:
            stem = re.split(r"[-.]", name)[0]
            if stem not in KNOWN:
                raise SystemExit(f"{name} is bundled, and its licence isn't known here")
            if stem.removeprefix("lib") not in components:
                raise SystemExit(f"no bill of materials names {name}")
            target = info / "licenses" / stem / "LICENSE"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(licence_text(stem).read_bytes())
            line = f"License-File: {stem}/LICENSE\n"
            metadata = metadata.replace("License-File: LICENSE\n", "License-File: LICENSE\n" + line)
            expressions.add(KNOWN[stem][0])
        whole = " AND ".join(["MIT", *sorted(expressions - {"MIT"})])
        metadata = metadata.replace("License-Expression: MIT\n", f"License-Expression: {whole}\n")
        (info / "METADATA").write_text(metadata)
        wheel.unlink()
        subprocess.run(
            [*run, "pack", "-d", str(wheel.parent), str(top)], check=True, stdout=subprocess.DEVNULL
        )
    print(f"{wheel.name}: {', '.join(bundled) or 'nothing bundled'}; {whole}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
