"""A patient's stable anatomy, a visit's pose, and the attenuation of the chest they make.

Coordinates: x to the right of the image (the patient's left), y down; the image spans -1 to 1
in both. Attenuation is a line integral, so parts add: air is 0, soft tissue near 0.55.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stamp.data.phantom.draws import RandomDraws
from stamp.data.phantom.shapes import Array, blob, bump, distance, edge, stroke

WAVES = 10
LUNG_DEPTH = 0.42
LUNG_CENTRE = np.float32(0.10)


@dataclass(frozen=True, slots=True)
class Anatomy:
    """One row a patient: what stays the same over visits."""

    chest: Array  # half-width of the rib cage
    gap: Array  # from the midline to the medial border of a lung
    apex: Array  # y of the top of the lungs
    taper: Array  # how far the apices lean inwards
    dome: Array  # y of the left half of the diaphragm, at mid inspiration
    dome_curve: Array
    right_rise: Array  # how much higher the right half stands
    heart_x: Array
    heart_y: Array
    heart_width: Array
    heart_height: Array
    heart_tilt: Array
    knob: Array  # radius of the aortic knob
    hilum: Array  # y of the lung roots
    torso: Array  # half-width of the body
    neck: Array
    shoulder: Array  # y where the shoulders begin
    tissue: Array  # thickness of soft tissue
    breast: Array  # 0 for none
    breast_y: Array
    bone: Array  # density of bone
    rib_spacing: Array
    rib_phase: Array
    rib_slope: Array
    clavicle: Array  # y of the medial ends
    clavicle_rise: Array
    spine_bend: Array  # scoliosis
    wave_x: Array  # the frequencies and phases of the vessel tree, WAVES a patient
    wave_y: Array
    wave_phase: Array


@dataclass(frozen=True, slots=True)
class Pose:
    """One row an image: how the patient stood and breathed."""

    shift_x: Array
    shift_y: Array
    angle: Array
    scale: Array
    lean: Array  # sideways shift of the middle chest when the patient stands turned
    breath: Array  # depth of inspiration: lowers the diaphragm
    gas: Array  # size of the air bubble in the stomach
    portable: Array  # 1 for a bedside exposure, which magnifies the heart


@dataclass(frozen=True, slots=True)
class Deform:
    """One row an image: how findings displace anatomy."""

    heart_width: Array
    heart_height: Array
    rise_right: Array
    rise_left: Array
    pull: Array


@dataclass(frozen=True, slots=True)
class Frame:
    """Coordinates of every pixel in the patient's body, and the lungs there."""

    x: Array
    y: Array
    side: Array  # -1 in the right half of the chest (left in the picture), 1 in the left half
    lateral: Array  # distance from the midline
    across: Array  # -1 at the medial border of a lung, 1 at the lateral one
    above: Array  # height above the widest part of the lungs, 0 below it
    radius: Array  # 0 in the middle of a lung, 1 at its border
    floor: Array  # y of the diaphragm
    heart: Array  # 1 inside the heart
    lung: Array  # 1 where the beam crosses aerated lung
    texture: Array  # the vessel field, about -1 to 1
    pixel: Array  # the side of a pixel, the same in all images


def draw_anatomy(draws: RandomDraws, tissue: float = 0.0) -> Anatomy:
    """The anatomy of each patient; ``tissue`` shifts the mean body thickness of the cohort."""
    normal, uniform = draws.normal, draws.uniform
    female = uniform("sex", 0, 1) < 0.5
    size = np.where(female, np.float32(0.96), np.float32(1.0))
    return Anatomy(
        chest=np.clip(normal("chest", 0.77, 0.045), 0.66, 0.88) * size,
        gap=uniform("gap", 0.11, 0.17),
        apex=uniform("apex", -0.84, -0.70),
        taper=uniform("taper", 0.06, 0.20),
        dome=normal("dome", 0.47, 0.05),
        dome_curve=uniform("dome curve", 0.08, 0.20),
        right_rise=normal("right rise", 0.05, 0.02),
        heart_x=normal("heart x", 0.10, 0.025),
        heart_y=normal("heart y", 0.25, 0.03),
        heart_width=np.clip(normal("heart width", 0.335, 0.022), 0.28, 0.39) * size,
        heart_height=np.clip(normal("heart height", 0.265, 0.02), 0.2, 0.32),
        heart_tilt=normal("heart tilt", 0.45, 0.12),
        knob=uniform("knob", 0.06, 0.11),
        hilum=normal("hilum", -0.02, 0.03),
        torso=np.clip(normal("torso", 1.02, 0.07), 0.88, 1.2),
        neck=uniform("neck", 0.22, 0.32),
        shoulder=uniform("shoulder", -0.92, -0.80),
        tissue=np.clip(normal("tissue", 0.56 + tissue, 0.05), 0.42, 0.75),
        breast=np.where(female, uniform("breast", 0.03, 0.15), np.float32(0)),
        breast_y=normal("breast y", 0.36, 0.07),
        bone=uniform("bone", 0.7, 1.25),
        rib_spacing=uniform("rib spacing", 0.165, 0.215),
        rib_phase=uniform("rib phase", 0, 1),
        rib_slope=uniform("rib slope", 0.25, 0.55),
        clavicle=normal("clavicle", -0.62, 0.04),
        clavicle_rise=uniform("clavicle rise", 0.05, 0.22),
        spine_bend=normal("spine bend", 0, 0.02),
        wave_x=normal("wave x", 0, 11, WAVES),
        wave_y=normal("wave y", 0, 9, WAVES),
        wave_phase=uniform("wave phase", 0, 2 * np.pi, WAVES),
    )


def draw_pose(draws: RandomDraws, visits: int, portable: float) -> Pose:
    """The pose at each of a patient's visits, arrays of (patients, visits)."""
    normal, uniform = draws.normal, draws.uniform
    return Pose(
        shift_x=normal("shift x", 0, 0.04, visits),
        shift_y=normal("shift y", 0, 0.04, visits),
        angle=normal("angle", 0, 0.035, visits),
        scale=np.clip(normal("scale", 1.0, 0.035, visits), 0.9, 1.1),
        lean=normal("lean", 0, 0.018, visits),
        breath=uniform("breath", -0.10, 0.07, visits),
        gas=uniform("gas", -0.5, 1.0, visits),
        portable=(uniform("portable", 0, 1, visits) < portable).astype(np.float32),
    )


def _waves(anatomy: Anatomy, along: Array, terms: tuple[Array, ...]) -> Array:
    """sum_k cos(a_k x + b_k y + c_k) / sqrt(K / 2) in patient coordinates.

    The pose is affine, so each term stays a plane wave over the image's own axes, and
    cos(u + v) = cos u cos v - sin u sin v makes the sum one matrix product an image.
    """
    cos, sin, scale, shift_x, shift_y = (t[:, :, 0] for t in terms)
    a = (anatomy.wave_x * cos - anatomy.wave_y * sin) / scale
    b = (anatomy.wave_x * sin + anatomy.wave_y * cos) / scale
    c = anatomy.wave_phase - a * shift_x - b * shift_y
    u = a[:, None, :] * along[None, :, None] + c[:, None, :]
    v = b[:, None, :] * along[None, :, None]
    rows = np.concatenate([np.cos(v), -np.sin(v)], axis=2)
    columns = np.concatenate([np.cos(u), np.sin(u)], axis=2)
    return rows @ columns.transpose(0, 2, 1) / np.float32(np.sqrt(WAVES / 2))


def _heart(x: Array, y: Array, anatomy: Anatomy, pose: Pose, deform: Deform) -> Array:
    """A tilted ellipse whose tip points down and to the patient's left."""
    cos, sin = np.cos(anatomy.heart_tilt), np.sin(anatomy.heart_tilt)
    heart_y = anatomy.heart_y + 0.5 * pose.breath
    u, v = x - anatomy.heart_x - pose.lean - deform.pull, y - heart_y
    larger = 1 + 0.09 * pose.portable - 0.5 * pose.breath
    width = anatomy.heart_width * deform.heart_width * larger
    height = anatomy.heart_height * deform.heart_height
    p, q = (u * cos + v * sin) / width, (v * cos - u * sin) / height
    return edge((1 - distance(p, q)) * height, 0.05)


def frame(anatomy: Anatomy, pose: Pose, deform: Deform, size: int) -> Frame:
    """Body coordinates and lung fields of a batch of images (records spread to pixels)."""
    along = ((2 * np.arange(size) + 1) / size - 1).astype(np.float32)
    cos, sin = np.cos(pose.angle), np.sin(pose.angle)
    across, down = along[None, None, :] - pose.shift_x, along[None, :, None] - pose.shift_y
    x, y = (across * cos + down * sin) / pose.scale, (down * cos - across * sin) / pose.scale
    texture = _waves(anatomy, along, (cos, sin, pose.scale, pose.shift_x, pose.shift_y))
    pixel = np.full_like(pose.scale, 2 / size)

    # The middle of the chest moves, its walls do not.
    middle = x - (pose.lean + deform.pull) * np.maximum(1 - np.abs(x), 0)
    lateral = np.abs(middle)
    above = np.maximum(LUNG_CENTRE - y, 0)
    half = (anatomy.chest - anatomy.gap) / 2
    offset = (lateral + anatomy.taper * above - anatomy.gap) / half - 1
    height = above / (LUNG_CENTRE - anatomy.apex)
    radius = distance(offset, height)
    right, left = deform.rise_right + anatomy.right_rise, deform.rise_left
    rise = right + (left - right) * edge(middle, 0.3)
    floor = anatomy.dome + pose.breath - rise
    floor = floor + anatomy.dome_curve * np.square(np.maximum(offset, -0.6))
    cavity = edge((1 - radius) * half, 1.5 * pixel)
    heart = _heart(x, y, anatomy, pose, deform)
    return Frame(
        x=x,
        y=y,
        side=np.copysign(np.float32(1), middle),
        lateral=lateral,
        across=offset,
        above=above,
        radius=radius,
        floor=floor,
        heart=heart,
        lung=cavity * edge(floor - y, 1.5 * pixel) * (1 - 0.85 * heart),
        texture=texture,
        pixel=pixel,
    )


def _soft_tissue(f: Frame, anatomy: Anatomy) -> Array:
    """The trunk, neck and shoulders, the breasts, and what lies below the diaphragm."""
    broad = edge(f.y - anatomy.shoulder - 0.18 * np.abs(f.x), 0.16)
    half = anatomy.neck + (anatomy.torso - anatomy.neck) * broad
    depth = np.sqrt(np.maximum(1 - np.square(f.x / half), 0))
    trunk = anatomy.tissue * np.minimum(1.25 * depth, 1)
    below = edge(f.y - f.floor, 2 * f.pixel) * (0.10 + 0.16 * depth)
    near, down = (f.lateral - 0.42) / 0.30, (f.y - anatomy.breast_y) / 0.26
    # A breast hangs: its lower border is sharp, its upper one fades.
    disc = np.maximum(1 - near * near - down * down, 0)
    breast = anatomy.breast * np.minimum(1.6 * disc, 1) * (0.75 + 0.25 * down)
    return trunk + below + breast


def _bones(f: Frame, anatomy: Anatomy) -> Array:
    """Ribs (back arcs and fainter front arcs), clavicles and the spine."""
    turn = np.float32(2 * np.pi) / anatomy.rib_spacing
    arc = f.lateral * f.lateral * anatomy.rib_slope
    back = np.maximum(np.cos(turn * (f.y - arc) + 6.28 * anatomy.rib_phase), 0)
    front = np.maximum(np.cos(turn * (f.y + 0.75 * f.lateral) + 5 * anatomy.rib_phase), 0)
    cage = edge(1.10 - f.radius, 0.10) * edge(0.80 - f.y, 0.2)
    ribs = cage * (0.085 * back * back + 0.04 * front * front * edge(f.lateral - 0.35, 0.2))

    bend = f.x - anatomy.spine_bend * np.sin(3 * f.y)
    vertebrae = 0.13 + 0.05 * np.cos(0.9 * turn * f.y + 3 * anatomy.rib_phase)
    spine = vertebrae * edge(0.085 - np.abs(bend), 0.05)
    collar = stroke(
        f.lateral,
        f.y,
        (0.10, anatomy.clavicle),
        (0.95 * anatomy.chest, anatomy.clavicle - anatomy.clavicle_rise),
        0.032,
    )
    return anatomy.bone * (ribs + spine + 0.13 * collar)


def _middle(f: Frame, anatomy: Anatomy, pose: Pose) -> Array:
    """The heart, aortic knob, lung roots; the windpipe and the stomach's air take away."""
    knob_x, knob_y = 0.07 + pose.lean, anatomy.hilum - 0.32
    knob = blob(f.x, f.y, (knob_x, knob_y), (anatomy.knob + 0.03, anatomy.knob))
    root = blob(f.lateral, f.y, (0.19, anatomy.hilum + 0.04), (0.09, 0.16))
    windpipe = bump(f.x - pose.lean, 0.045) * edge(-0.30 - f.y, 0.15)
    low = anatomy.dome + pose.breath + 0.14
    gas = np.maximum(pose.gas, 0) * blob(f.x, f.y, (0.36, low), (0.16, 0.08))
    return 0.07 * f.heart + 0.22 * knob + 0.13 * root - 0.16 * windpipe - 0.30 * gas


def _vessels(f: Frame, anatomy: Anatomy) -> Array:
    """Lung markings: ridges along the zero lines of the texture, fading towards the wall."""
    away = distance(f.lateral - 0.18, f.y - anatomy.hilum)
    return bump(f.texture, 0.30) * np.exp(-2.2 * away)


def attenuation(f: Frame, anatomy: Anatomy, pose: Pose) -> Array:
    """The healthy chest: trunk, bones and middle, minus the air of the lungs."""
    middle = _middle(f, anatomy, pose)
    lungs = f.lung * (0.14 * _vessels(f, anatomy) - LUNG_DEPTH * anatomy.tissue / 0.56)
    return _soft_tissue(f, anatomy) + _bones(f, anatomy) + middle + lungs
